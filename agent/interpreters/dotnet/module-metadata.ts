/**
 * The metadata of a module, in its process: the simple name of the module's assembly is one of its strings, and from there
 * it is looked for backwards. So it is found wherever the assembly came from, be it a file, the bundle of a single-file
 * application or an array of bytes.
 */
import { MalformedMetadata, Metadata, type ReadAt } from '../../../common/dotnet/metadata.ts';
import { CannotRead, type RuntimeMemory } from '../runtime-memory.ts';

/** 'BSJB' */
const SIGNATURE = Buffer.from('BSJB', 'latin1');
const CHUNK = 64 << 10;
const PAGE = 4096;
/** The largest assemblies have some 25 MiB of it. */
const MAX_BACK = 64 << 20;
/** Others than the right one are chance. */
const MAX_CANDIDATES = 64;

/** Address of the root of the metadata in which the string at `name` stands. Throws CannotRead. */
export function findMetadata(memory: RuntimeMemory, name: number): number {
  let candidates = 0;
  for (let end = name; end > name - MAX_BACK; ) {
    const { start, text } = readBefore(memory, end, end === name ? PAGE : CHUNK);
    // none lies across two pieces: it is aligned to 4 bytes
    for (let at = text.lastIndexOf(SIGNATURE); at >= 0; at = text.subarray(0, at).lastIndexOf(SIGNATURE)) {
      if (holds(memory, start + at, name)) return start + at;
      if (++candidates > MAX_CANDIDATES) throw new CannotRead('malformed');
    }
    end = start;
  }
  throw new CannotRead('malformed');
}

/** From a page's start up to `end`; one page alone where those before it are not all mapped. */
function readBefore(memory: RuntimeMemory, end: number, length: number): { start: number; text: Buffer } {
  const page = Math.floor((end - 1) / PAGE) * PAGE;
  const start = Math.max(PAGE, page - (length - PAGE));
  const bytes = memory.whole(start, end - start);
  if (!bytes && start < page) return readBefore(memory, end, PAGE);
  if (!bytes) throw new CannotRead('unreadable');
  return { start, text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) };
}

function holds(memory: RuntimeMemory, root: number, name: number): boolean {
  if (root % 4 !== 0) return false;
  try {
    const { at, size } = new Metadata(readerAt(memory, root)).strings;
    return name >= root + at && name < root + at + size;
  } catch (error) {
    if (error instanceof MalformedMetadata || error instanceof CannotRead) return false;
    throw error;
  }
}

export const readerAt =
  (memory: RuntimeMemory, root: number): ReadAt =>
  (at, length) =>
    memory.view(root + at, length);
