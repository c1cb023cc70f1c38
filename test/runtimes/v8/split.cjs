// split.cjs SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.
const { readFileSync } = require('node:fs');
const { Worker, isMainThread, workerData } = require('node:worker_threads');

const text = JSON.stringify(Array.from({ length: 400 }, (_, i) => ({ id: i, name: `name ${i}` })));

/** CPU time of this thread in nanoseconds. */
function cpuTime() {
  // brings the kernel's account up to now; by itself the file says how it was at the last tick, up to 4 ms ago
  process.cpuUsage();
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ', 1)[0]);
}

/** The same native leaf below both. */
function parse() {
  return JSON.parse(text).length;
}

function spin() {
  let sum = 0;
  for (let i = 0; i < 200_000; i++) sum = (sum + i * 7) | 0;
  return sum;
}

function deep(depth) {
  return depth > 0 ? deep(depth - 1) + 1 : spin();
}

const WORK = { leaf: parse, hot: spin, recursive: () => deep(30), threads: spin };
const work = WORK[isMainThread ? process.argv[2] : 'threads'];
// of a and b; shared by the threads
const spent = isMainThread ? new BigInt64Array(new SharedArrayBuffer(16)) : workerData;

function a(times) {
  let sum = 0;
  for (let i = 0; i < times; i++) sum += work();
  return sum;
}

function b(times) {
  let sum = 0;
  for (let i = 0; i < times; i++) sum += work();
  return sum;
}

/** Has a() had its 30 %? */
const isTurnOfA = () => Atomics.load(spent, 0) * 7n <= Atomics.load(spent, 1) * 3n;

/** Of changing length, so that no sampling rate falls into step. */
function take(turn) {
  const times = 1 + Math.floor(Math.random() * 10);
  if (turn === 0) a(times);
  else b(times);
}

function both() {
  for (let before = cpuTime(); ; ) {
    const turn = isTurnOfA() ? 0 : 1;
    take(turn);
    const now = cpuTime();
    Atomics.add(spent, turn, BigInt(now - before));
    before = now;
  }
}

/** Works whenever it is its turn. */
function only(turn) {
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    if (isTurnOfA() !== (turn === 0)) {
      Atomics.wait(nobody, 0, 0, 1);
      continue;
    }
    const before = cpuTime();
    take(turn);
    Atomics.add(spent, turn, BigInt(cpuTime() - before));
  }
}

if (!isMainThread) only(0);
else if (process.argv[2] === 'threads') {
  new Worker(__filename, { workerData: spent });
  only(1);
} else both();
