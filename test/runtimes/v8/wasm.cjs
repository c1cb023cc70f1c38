// Time in WebAssembly, which has frames of its own: wasm calls outer calls wasm-function[4] calls middle calls leaf.
const [NOP, END] = [0x01, 0x0b];
const unsigned = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...unsigned(n >>> 7)]);
const text = (string) => [string.length, ...Buffer.from(string)];
const vector = (items) => [...unsigned(items.length), ...items.flat()];
const section = (id, bytes) => [id, ...unsigned(bytes.length), ...bytes];
const body = (...code) => [...unsigned(code.length), ...code];

const I32 = 0x7f;
const NO_LOCALS = 0;
// calls argument 0 times into the function
const call = (index) => body(NO_LOCALS, 0x20, 0, 0x10, index, END);
const callIndirect = body(NO_LOCALS, 0x20, 0, 0x41, 0, 0x11, 0, 0, END);
// a sum in a loop: local 1 += argument, until argument is 0
const loop = body(
  ...[1, 1, I32, 0x03, 0x40, 0x20, 1, 0x20, 0, 0x6a, 0x21, 1, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, END],
  // V8 inlines what has up to 500 bytes, once it was called often enough: into `leaf`'s callers, not `leaf` itself
  ...[...Array(600).fill(NOP), 0x20, 1, END],
);

const bytes = Uint8Array.from([
  ...Buffer.from('\0asm\x01\0\0\0', 'latin1'),
  // one type: of a number a number
  ...section(1, vector([[0x60, 1, I32, 1, I32]])),
  // function 0 comes from outside, behind a memory
  ...section(
    2,
    vector([
      [...text('env'), ...text('memory'), 2, 0, 1],
      [...text('env'), ...text('imported'), 0, 0],
    ]),
  ),
  ...section(3, vector([[0], [0], [0], [0]])),
  ...section(4, [1, 0x70, 0, 1]),
  ...section(7, vector([[...text('outer'), 0, 3]])),
  ...section(9, [1, 0, 0x41, 0, END, 1, 2]),
  ...section(10, vector([loop, call(1), call(4), callIndirect])),
  ...section(0, [
    ...text('name'),
    ...section(0, text('sums')),
    ...section(
      1,
      vector([
        [1, ...text('leaf')],
        [2, ...text('middle')],
      ]),
    ),
  ]),
]);
const env = { memory: new WebAssembly.Memory({ initial: 1 }), imported: (x) => x };
const { outer } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env }).exports;
function wasm() {
  return outer(1_000_000);
}

// so often that V8 compiles the callers anew, into one another
for (let i = 0; i < 2_000_000; i++) outer(1);
for (;;) wasm();
