import { expect, test } from 'vitest';
import { functionCookie, readFunction } from './functions.ts';
import { FUNCTION, layoutOf, STRING } from './layout.ts';

const LAYOUT = layoutOf(8, 2)!;
const [AT, NAME, SCOPE, CLASS, FILE] = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000];

/** A process with one function; '' stands for no name. */
function processWith({ type = 2, name = '', scope = '' }: { type?: number; name?: string; scope?: string }) {
  const bytes = Buffer.alloc(0x6000);
  const string = (at: number, text: string): void => {
    bytes.writeUInt32LE(text.length, at + STRING.length);
    bytes.write(text, at + STRING.data);
  };
  bytes[AT + FUNCTION.type] = type;
  if (name) bytes.writeUInt32LE(NAME, AT + FUNCTION.name);
  if (scope) bytes.writeUInt32LE(SCOPE, AT + FUNCTION.scope);
  bytes.writeUInt32LE(CLASS, SCOPE + 8);
  bytes.writeUInt32LE(FILE, AT + LAYOUT.functionFile);
  bytes.writeUInt32LE(12, AT + LAYOUT.functionFile + 8);
  bytes.writeUInt32LE(20, AT + LAYOUT.functionFile + 12);
  for (const [at, text] of [
    [NAME, name],
    [CLASS, scope],
    [FILE, '/app/a.php'],
  ] as const)
    string(at, text);
  return { read: (address: number, length: number) => bytes.subarray(address, address + length) };
}

function read(memory: ReturnType<typeof processWith>) {
  const view = (at: number, length: number): DataView => {
    const bytes = memory.read(at, length);
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  };
  const cookie = functionCookie(view(AT, 24), view(AT + LAYOUT.functionFile, 16));
  return readFunction(memory, LAYOUT, AT, cookie);
}

test.each([
  [{ name: 'spend' }, 'spend'],
  [{ name: 'run', scope: 'App\\Shop' }, 'App\\Shop::run'],
  [{}, '{main}'],
  [{ type: 4 }, '{eval}'],
  [{ name: '{closure}' }, '{closure:12}'],
  [{ name: 'App\\{closure}' }, 'App\\{closure:12}'],
  [{ name: 'App\\{closure}', scope: 'App\\Shop' }, 'App\\Shop::{closure:12}'],
  [{ name: '{closure:App\\Shop::run():12}', scope: 'App\\Shop' }, 'App\\Shop::{closure:App\\Shop::run():12}'],
])('%o is called %s', (made, name) => {
  expect(read(processWith(made))).toEqual({ name, file: '/app/a.php', firstLine: 12, lastLine: 20 });
});

test('a function that was freed is none, although all but its type still stands there', () => {
  for (const type of [0, 3, 5, 255]) expect(read(processWith({ type })), `type ${type}`).toBe('replaced');
});
