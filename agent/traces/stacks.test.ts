import { expect, onTestFinished, test, vi } from 'vitest';
import { type TraceId, toPid } from '../../common/base/brand.ts';
import { emptyMapping } from '../../common/profile/model/profile.ts';
import { JitFrames } from '../jit/jit-frames.ts';
import { OWN_VIEW } from '../processes/root-views.ts';
import { FrameKind, TRACE } from '../records/records.gen.ts';
import { FrameResolver, type KernelPlace, type NativeSource, type RuntimeSource } from './frame-resolver.ts';
import { Stacks } from './stacks.ts';
import { TraceStore } from './trace-store.ts';

const word = (kind: number, operand: bigint): bigint => (BigInt(kind) << 56n) | operand;
const fileFrames = (from: number, count: number): bigint[] =>
  Array.from({ length: count }, (_, i) => [word(FrameKind.FILE, BigInt(from + i)), 7n]).flat();

const native: NativeSource = {
  locate: (key, offset) => ({ mapping: { ...emptyMapping(), fileId: key }, address: offset }),
  nameOf: () => '',
  resolve: async (_key, addresses, view) =>
    addresses.map((address) => ({
      frames: [
        {
          function: view === OWN_VIEW ? `f${address}` : `f${address} of ${view}`,
          systemName: '',
          file: '',
          line: 0,
          column: 0,
          inlined: false,
        },
      ],
      start: address,
      end: address + 1,
    })),
};
const runtimes: RuntimeSource = {
  runs: () => true,
  name: ({ words: { operand } }) => ({
    frameType: 'v8js',
    linesFrom: 'source-map',
    lines: [{ name: `js${operand}`, file: 'a.js', line: 7, column: 1, startLine: 5 }],
  }),
  *nameAll(frames, take) {
    for (const frame of frames) {
      take(frame, this.name(frame));
      yield;
    }
  },
};

class Machine {
  readonly store = new TraceStore({ maxBytes: 4 << 20, forget: () => {} });
  readonly frames: FrameResolver;
  readonly stacks: Stacks;
  #hash = 0;

  constructor(kernelPlace: () => Partial<KernelPlace> = () => ({}), source = runtimes) {
    const locate = (address: bigint): KernelPlace => ({
      mapping: emptyMapping(),
      address: 16,
      name: `k${address.toString(16)}`,
      mayChange: false,
      ...kernelPlace(),
    });
    const jit = new JitFrames({ proc: '/nonexistent' });
    this.frames = new FrameResolver(native, { locate }, source, jit);
    this.stacks = new Stacks(this.store, this.frames, ({ pid }) => pid);
  }

  add(words: bigint[], kernelFrames = 0): TraceId {
    const record = Buffer.alloc(TRACE.frames + words.length * 8);
    record.writeUInt16LE(words.length, TRACE.words);
    record.writeUInt16LE(kernelFrames, TRACE.kernelFrames);
    record.writeUInt32LE(++this.#hash, TRACE.traceHash);
    for (const [i, value] of words.entries()) record.writeBigUInt64LE(value, TRACE.frames + i * 8);
    return this.store.add(record, 0, record.length);
  }

  namesOf(...ids: TraceId[]): Promise<string[][]> {
    return this.namesIn(ids.map((id) => ({ id, view: OWN_VIEW })));
  }

  /** Of traces as processes of a view have them; the views are the numbers of the processes. */
  namesIn(traces: { id: TraceId; view: number }[]): Promise<string[][]> {
    const processOf = (i: number) => ({ pid: toPid(traces[i]!.view), execId: 0, startBoottimeNs: 0n });
    return this.stacks.resolve({ size: traces.length, traceOf: (i) => traces[i]!.id, processOf }, async () =>
      traces.map(({ id, view }) => {
        const numbers = new Uint32Array(this.stacks.depthOf(id, view));
        this.stacks.mapFrames(id, view, numbers, (number) => number);
        return [...numbers].map((number) => this.stacks.frameAt(number).lines[0]?.function ?? '');
      }),
    );
  }
}

test('all frames of an interval are named that has more than are kept', async () => {
  const machine = new Machine();
  const ids = Array.from({ length: 40 }, (_, i) => machine.add(fileFrames(i * 1000, 1000)));
  const names = await machine.namesOf(...ids);
  expect(names.flat().filter((name) => name === '')).toEqual([]);
  expect(new Set(names.flat()).size).toBe(40_000);
  // they are made anew for the next one
  expect(machine.frames.frameCount).toBe(0);
  expect(await machine.namesOf(ids[3]!)).toEqual([names[3]]);
});

test('a trace is named whole whose other frames were forgotten between two of its steps', async () => {
  const machine = new Machine();
  const id = machine.add([...fileFrames(16, 1), word(FrameKind.V8, 1n), 1n]);
  const steps = machine.stacks.resolveNow([id]);
  while (!steps.next().done) machine.frames.forget();
  expect(await machine.namesOf(id)).toEqual([['f16', 'js1']]);
});

test('a trace is named again as long as its process does not answer', async () => {
  let answers = false;
  const late = { frameType: 'v8js', linesFrom: 'source-map', isForNow: true } as const;
  const line = { name: 'late', file: '', line: 0, column: 0, startLine: 0 };
  const machine = new Machine(undefined, {
    ...runtimes,
    name: (frame) => (answers ? runtimes.name(frame) : { ...late, lines: [line] }),
  });
  const id = machine.add([word(FrameKind.V8, 1n), 1n]);
  for (const _ of machine.stacks.resolveNow([id]));
  for (let i = 0; i < 4; i++) expect(await machine.namesOf(id)).toEqual([['late']]);
  answers = true;
  expect(await machine.namesOf(id)).toEqual([['js1']]);
  answers = false;
  expect(await machine.namesOf(id)).toEqual([['js1']]);
});

test('a trace whose line could not be read is named again a little later, though all its samples are seen at once', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let isMoving = true;
  const line = { name: 'moving', file: '', line: 0, column: 0, startLine: 0 };
  const machine = new Machine(undefined, {
    ...runtimes,
    name: (frame) =>
      isMoving ? { frameType: 'v8js', linesFrom: 'source-map', lines: [line] } : runtimes.name(frame),
  });
  const id = machine.add([word(FrameKind.V8, 1n), 1n]);
  for (let i = 0; i < 4; i++) expect(await machine.namesOf(id)).toEqual([['moving']]);
  isMoving = false;
  vi.advanceTimersByTime(1000);
  expect(await machine.namesOf(id)).toEqual([['js1']]);
});

test('frames of a trace are made once, but where other code may stand each time', async () => {
  let name = 'bpf_prog_first';
  let asked = 0;
  const machine = new Machine(() => {
    asked++;
    return name === '' ? {} : { name, mayChange: true };
  });
  const id = machine.add([0xffff_ffff_c000_0010n], 1);
  expect(await machine.namesOf(id)).toEqual([['bpf_prog_first']]);
  name = 'bpf_prog_second';
  expect(await machine.namesOf(id)).toEqual([['bpf_prog_second']]);
  name = '';
  const kept = await machine.namesOf(id);
  const before = asked;
  expect(await machine.namesOf(id)).toEqual(kept);
  expect(asked).toBe(before);
  machine.frames.forgetKernel();
  name = 'after_a_module_was_loaded';
  expect(await machine.namesOf(id)).toEqual([['after_a_module_was_loaded']]);
});

test('processes that see other files have names of their own for the same trace', async () => {
  const machine = new Machine();
  const [one, two] = [machine.add(fileFrames(1, 1)), machine.add(fileFrames(1, 2))];
  const asked = [
    { id: one!, view: 7 },
    { id: one!, view: OWN_VIEW },
    { id: two!, view: OWN_VIEW },
    { id: one!, view: 8 },
  ];
  const expected = [['f1 of 7'], ['f1'], ['f1', 'f2'], ['f1 of 8']];
  for (let interval = 0; interval < 2; interval++) expect(await machine.namesIn(asked)).toEqual(expected);
  expect(await machine.namesIn(asked.toReversed())).toEqual(expected.toReversed());
});
