// Time in WebAssembly, which has frames of its own.
// spin(n): a sum in a loop
const bytes = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 8, 1, 4, 115, 112, 105, 110, 0, 0,
  10, 27, 1, 25, 1, 1, 127, 3, 64, 32, 1, 32, 0, 106, 33, 1, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 1, 11,
];
const { spin } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports;
function wasm() {
  return spin(100_000_000);
}

for (;;) wasm();
