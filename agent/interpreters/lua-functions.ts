/** What Lua and LuaJIT have in common: how functions and the texts that they stand in are called. */
import type { NameCache } from './contract.ts';

const MAX_TEXT = 60;
const ENTRY_BYTES = 120;

/** As Lua says it: of a text that was loaded its beginning. */
export function fileOfChunk(chunk: string): string {
  if (chunk.startsWith('@') || chunk.startsWith('=')) return chunk.slice(1);
  const [line = ''] = chunk.split('\n', 1);
  const isCut = line.length < chunk.length || line.length > MAX_TEXT;
  return `[string "${line.slice(0, MAX_TEXT)}${isCut ? '...' : ''}"]`;
}

/** What is known of what stands at an address. */
interface Known {
  /** Tells it from what stood there before. */
  identity: string;
  name: string | undefined;
}

/** The name by which it was called first: a function has one, by whatever it is called. */
export function firstName(
  cache: NameCache,
  at: number,
  identity: string,
  find: () => string | undefined,
): string | undefined {
  let known = cache.get(at) as Known | undefined;
  if (known?.identity !== identity) {
    if (!known) cache.bytes += ENTRY_BYTES + 2 * identity.length;
    known = { identity, name: undefined };
    cache.set(at, known);
  }
  known.name ??= find();
  return known.name;
}
