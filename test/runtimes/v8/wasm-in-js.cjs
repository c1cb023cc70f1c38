// Time in a function of WebAssembly that V8 inlines into the JavaScript that calls it: what only reads an object of
// WebAssembly's own, and has 30 bytes at most. Each step is the index of the next.
const END = 0x0b;
const unsigned = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...unsigned(n >>> 7)]);
const text = (string) => [string.length, ...Buffer.from(string)];
const vector = (items) => [...unsigned(items.length), ...items.flat()];
const section = (id, bytes) => [id, ...unsigned(bytes.length), ...bytes];
const body = (...code) => [...unsigned(code.length + 2), 0, ...code, END];

const [I32, EXTERN, MUTABLE] = [0x7f, 0x6f, 1];
const local = (index) => [0x20, index];
// argument 0, which JavaScript knows as an object, as the array that it is
const list = [...local(0), 0xfb, 0x1a, 0xfb, 0x16, 0];
const get = [0xfb, 0x0b, 0];

const bytes = Uint8Array.from([
  ...Buffer.from('\0asm\x01\0\0\0', 'latin1'),
  ...section(
    1,
    vector([
      [0x5e, I32, MUTABLE],
      [0x60, 1, I32, 1, EXTERN],
      [0x60, 3, EXTERN, I32, I32, 0],
      [0x60, 2, EXTERN, I32, 1, I32],
    ]),
  ),
  ...section(3, vector([[1], [2], [3]])),
  ...section(
    7,
    vector([
      [...text('make'), 0, 0],
      [...text('set'), 0, 1],
      [...text('follow'), 0, 2],
    ]),
  ),
  ...section(
    10,
    vector([
      body(...local(0), 0xfb, 7, 0, 0xfb, 0x1b),
      body(...list, ...local(1), ...local(2), 0xfb, 0x0e, 0),
      body(...list, ...list, ...local(1), ...get, ...get),
    ]),
  ),
  ...section(0, [
    ...text('name'),
    ...section(0, text('lists')),
    ...section(1, vector([[2, ...text('second')]])),
  ]),
]);
const { make, set, follow } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;

// all of it in the cache: V8 keeps no position of the load of an element
const LENGTH = 1 << 10;
const steps = make(LENGTH);
for (let i = 0; i < LENGTH; i++) set(steps, i, (Math.imul(i, 1664525) + 1013904223) & (LENGTH - 1));

function walk(count) {
  let at = 0;
  for (let i = 0; i < count; i++) at = follow(steps, at);
  return at;
}

for (;;) walk(100_000);
