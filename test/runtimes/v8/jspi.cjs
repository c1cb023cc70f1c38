// WebAssembly that may wait for promises (WebAssembly.promising) has a stack of its own, which JavaScript that it calls leaves
// again: promised calls wait, which suspends it, and burn.
const text = (string) => [string.length, ...Buffer.from(string)];
const vector = (items) => [items.length, ...items.flat()];
const section = (id, bytes) => [id, bytes.length, ...bytes];

const bytes = Uint8Array.from([
  ...Buffer.from('\0asm\x01\0\0\0', 'latin1'),
  // one type: of nothing nothing
  ...section(1, vector([[0x60, 0, 0]])),
  ...section(
    2,
    vector([
      [...text('env'), ...text('wait'), 0, 0],
      [...text('env'), ...text('burn'), 0, 0],
    ]),
  ),
  ...section(3, vector([[0]])),
  ...section(7, vector([[...text('promised'), 0, 2]])),
  ...section(10, vector([[6, 0, 0x10, 0, 0x10, 1, 0x0b]])),
]);
let sum = 0;
function burn() {
  for (let i = 0; i < 30_000_000; i++) sum = (sum * 31 + i) | 0;
}
const env = { wait: new WebAssembly.Suspending(async () => {}), burn };
const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env });
const promised = WebAssembly.promising(instance.exports.promised);
(async () => {
  for (;;) await promised();
})();
