import { describe, expect, it } from 'vitest';
import { type FileKey, type Pid, toFileKey, toPid } from '../../common/base/brand.ts';
import { emptyMapping } from '../../common/profile/model/profile.ts';
import type { NamedRange } from '../../common/symbols/source.ts';
import { JitFrames } from '../jit/jit-frames.ts';
import { FrameKind, Marker } from '../records/records.gen.ts';
import type { Frame } from './frame.ts';
import {
  FrameResolver,
  type KernelSource,
  MARKER_TEXT,
  type NativeSource,
  type RuntimeSource,
} from './frame-resolver.ts';
import type { Trace } from './trace-store.ts';

/** At one address alone. */
const namedAlone = (address: number, name: string): NamedRange => ({
  frames: [{ function: name, systemName: '', file: '', line: 0, column: 0, inlined: false }],
  start: address,
  end: address + 1,
});

const word = (kind: number, operand: bigint): bigint => (BigInt(kind) << 56n) | operand;

const traceOf = (kernelFrames: number, words: bigint[]) => ({
  pid: toPid(1),
  execId: 0,
  startBoottimeNs: 0n,
  kernelFrames,
  u32Pairs: new Uint32Array(BigUint64Array.from(words).buffer),
  runtimeFile: 0n,
});

/** Names a file's frames after its key and address, the kernel's after their address. */
function resolver(
  isOpen = () => true,
  isKnown: (key: FileKey) => boolean = () => true,
  source: RuntimeSource = runtimes,
): FrameResolver {
  const native: NativeSource = {
    locate: (key, offset) =>
      isOpen() ? { mapping: { ...emptyMapping(), fileId: key }, address: offset + 0x1000 } : undefined,
    nameOf: () => '/bin/late',
    resolve: async (key, addresses) =>
      addresses.map((address) => {
        if (!isKnown(key)) return { frames: [], start: 0, end: 0 };
        return namedAlone(address, `${key}+${address.toString(16)}`);
      }),
  };
  const kernel: KernelSource = {
    locate: (address) => ({
      mapping: emptyMapping(),
      address: 0,
      name: address.toString(16),
      mayChange: false,
    }),
  };
  return new FrameResolver(native, kernel, source, new JitFrames({ proc: '/nonexistent' }));
}

/** Names all at once as it names one. */
const runtimesOf = (name: RuntimeSource['name']): RuntimeSource => ({
  runs: () => true,
  name,
  *nameAll(frames, take) {
    for (const frame of frames) {
      take(frame, name(frame));
      yield;
    }
  },
});

const runtimes = runtimesOf(({ pid, key, words: { operand, low, high } }) => ({
  frameType: 'cpython',
  linesFrom: undefined,
  lines: [
    {
      name: `${pid} ${key} ${operand} ${low} ${high}`,
      file: 'a.py',
      line: 7,
      column: 1,
      startLine: 5,
    },
  ],
}));

const namesOf = (frames: { lines: { function: string }[] }[]) =>
  frames.map((f) => f.lines[0]?.function ?? '');

/** All steps at once. */
function framesOf(frames: FrameResolver, trace: Trace): Frame[] {
  const steps = frames.framesOf(trace);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value.numbers.map((number) => frames.frameAt(number));
  }
}

describe('the frame resolver', () => {
  it('looks kernel callers up inside their call, and the leaf where it was', async () => {
    const frames = framesOf(
      resolver(),
      traceOf(3, [0xffff_ffff_8100_0010n, 0xffff_ffff_8100_0010n, 0xffff_ffff_c000_0000n]),
    );
    expect(namesOf(frames)).toEqual(['ffffffff81000010', 'ffffffff8100000f', 'ffffffffbfffffff']);
  });

  it('asks each time what stands where kernel code comes and goes', () => {
    let now = 'bpf_prog_first';
    const kernel: KernelSource = {
      locate: () => ({ mapping: emptyMapping(), address: 16, name: now, mayChange: true }),
    };
    const native: NativeSource = { locate: () => undefined, nameOf: () => '', resolve: async () => [] };
    const frames = new FrameResolver(native, kernel, runtimes, new JitFrames({ proc: '/nonexistent' }));
    const trace = traceOf(1, [0xffff_ffff_c000_0010n]);
    expect(namesOf(framesOf(frames, trace))).toEqual(['bpf_prog_first']);
    now = 'bpf_prog_second';
    expect(namesOf(framesOf(frames, trace))).toEqual(['bpf_prog_second']);
  });

  it('tells files apart whose keys share a half, and offsets past 4 GiB', async () => {
    const subject = resolver();
    const words = [
      [word(FrameKind.FILE, 0x10n), 0x1111_1111_0000_0001n],
      [word(FrameKind.FILE, 0x10n), 0x2222_2222_0000_0001n],
      [word(FrameKind.FILE, 0x1_0000_0010n), 0x1111_1111_0000_0001n],
    ].flat();
    const frames = framesOf(subject, traceOf(0, words));
    await subject.symbolizeFrames();
    expect(namesOf(frames)).toEqual([
      '1111111100000001+1010',
      '2222222200000001+1010',
      '1111111100000001+100001010',
    ]);
  });

  it('keeps where a function without a name begins, until it has one', async () => {
    let isNamed = false;
    const asked: number[][] = [];
    const native: NativeSource = {
      locate: (key, offset) => ({ mapping: { ...emptyMapping(), fileId: key }, address: offset }),
      nameOf: () => '',
      resolve: async (_, addresses) => {
        asked.push(addresses);
        return addresses.map((address) =>
          isNamed
            ? namedAlone(address, 'work')
            : { frames: [], functionStart: 0x1000, start: 0x1000, end: 0x1100 },
        );
      },
    };
    const kernel: KernelSource = { locate: () => expect.fail() };
    const subject = new FrameResolver(native, kernel, runtimes, new JitFrames({ proc: '/nonexistent' }));
    const at = async (offset: bigint) => {
      const [frame] = framesOf(subject, traceOf(0, [word(FrameKind.FILE, offset), 0x1111_1111_0000_0001n]));
      await subject.symbolizeFrames();
      return frame!;
    };
    const first = await at(0x1004n);
    expect([first.functionStart, (await at(0x10ffn)).functionStart]).toEqual([0x1000, 0x1000]);
    // what lies in a function that was met is not asked for
    expect(asked).toEqual([[0x1004]]);
    isNamed = true;
    subject.renameFile(toFileKey('1111111100000001'));
    await subject.symbolizeFrames();
    expect([namesOf([first]), first.functionStart]).toEqual([['work'], 0]);
  });

  it('shares frames between traces and says why a stack was cut', () => {
    const subject = resolver();
    const anon = word(FrameKind.ANON, 0x7fff_1234_5678n);
    const [a, cut] = framesOf(subject, traceOf(0, [anon, word(FrameKind.MARKER, BigInt(Marker.ANON))]));
    const [b] = framesOf(subject, traceOf(0, [anon]));
    expect(a).toBe(b);
    expect(a).toMatchObject({ address: 0x7fff_1234_5678, mapping: { filename: '[anon]' } });
    expect(cut).toMatchObject({
      frameType: 'abort-marker',
      lines: [{ function: MARKER_TEXT[Marker.ANON] }],
    });
  });

  it('names the same words anew in the next execution of a process', () => {
    let names = 0;
    const counting = runtimesOf((frame) => {
      names++;
      return runtimes.name(frame);
    });
    const frames = resolver(undefined, undefined, counting);
    const trace = traceOf(0, [word(FrameKind.PYTHON, 1n), 2n]);
    for (const execution of [{}, { execId: 1 }, { startBoottimeNs: 1n }, { pid: toPid(2) }, { execId: 1 }])
      framesOf(frames, { ...trace, ...execution });
    expect(names).toBe(4);
  });

  it('finds the runtime of a stack that was cut before any of its native frames', () => {
    const words = [word(FrameKind.V8, 0x10n), 0x2_0000_0001n, word(FrameKind.MARKER, BigInt(Marker.DEPTH))];
    const [frame] = framesOf(resolver(), { ...traceOf(0, words), runtimeFile: 7n });
    expect(namesOf([frame!])).toEqual(['1 0000000000000007 16 1 2']);
    const [nameless] = framesOf(resolver(), traceOf(0, words));
    expect(namesOf([nameless!])).toEqual(['1 undefined 16 1 2']);
  });

  it('keeps code that no file backs apart by execution', () => {
    const subject = resolver();
    const frameOf = (process: { pid?: Pid; execId?: number; startBoottimeNs?: bigint }) =>
      framesOf(subject, { ...traceOf(0, [word(FrameKind.ANON, 0x1000n)]), ...process })[0];
    const first = frameOf({});
    const others = [frameOf({ pid: toPid(2) }), frameOf({ execId: 1 }), frameOf({ startBoottimeNs: 1n })];
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it('names a frame once its file is open', async () => {
    let open = false;
    const subject = resolver(() => open);
    const [frame] = framesOf(subject, traceOf(0, [word(FrameKind.FILE, 0x20n), 5n]));
    await subject.symbolizeFrames();
    expect(frame).toMatchObject({ mapping: { filename: '/bin/late' }, lines: [] });
    open = true;
    await subject.symbolizeFrames();
    expect(namesOf([frame!])).toEqual(['0000000000000005+1020']);
  });

  it('names frames of a file again when more is known of it, and loses none of what it knew', async () => {
    let [known, asked] = [false, 0];
    const frames = resolver(
      () => true,
      () => {
        asked++;
        return known;
      },
    );
    const trace = traceOf(0, [word(FrameKind.FILE, 0x10n), 7n, word(FrameKind.FILE, 0x20n), 8n]);
    const name = async () => {
      const [first, second] = framesOf(frames, trace);
      await frames.symbolizeFrames();
      return [first!.lines[0]?.function, second!.lines[0]?.function];
    };
    const [seven, eight] = ['0000000000000007', '0000000000000008'].map(toFileKey);
    expect(await name()).toEqual([undefined, undefined]);
    expect(await name()).toEqual([undefined, undefined]);
    expect(asked).toBe(2);
    known = true;
    frames.renameFile(seven!);
    expect(await name()).toEqual([`${seven}+1010`, undefined]);
    known = false;
    frames.renameFile(seven!);
    frames.renameFile(eight!);
    expect(await name()).toEqual([`${seven}+1010`, undefined]);
    expect(asked).toBe(5);
  });

  it('names a frame again that was being named when more became known of its file', async () => {
    let known = false;
    const subject = resolver(
      () => true,
      () => known,
    );
    const [frame] = framesOf(subject, traceOf(0, [word(FrameKind.FILE, 0x10n), 7n]));
    const naming = subject.symbolizeFrames();
    known = true;
    subject.renameFile(toFileKey('0000000000000007'));
    await naming;
    await subject.symbolizeFrames();
    expect(namesOf([frame!])).toEqual(['0000000000000007+1010']);
  });

  it('asks once for a function, and again when more is known of its file', async () => {
    const asked: number[][] = [];
    const native: NativeSource = {
      locate: (key, offset) => ({ mapping: { ...emptyMapping(), fileId: key }, address: offset }),
      nameOf: () => '',
      resolve: async (_key, addresses) => {
        asked.push(addresses);
        return addresses.map((address) => {
          const start = address - (address % 0x100);
          return { ...namedAlone(address, `f${start}`), start, end: start + 0x100 };
        });
      },
    };
    const kernel: KernelSource = {
      locate: () => ({ mapping: emptyMapping(), address: 0, name: '', mayChange: false }),
    };
    const subject = new FrameResolver(native, kernel, runtimes, new JitFrames({ proc: '/nonexistent' }));
    const name = async (...offsets: bigint[]) => {
      const frames = framesOf(
        subject,
        traceOf(
          0,
          offsets.flatMap((offset) => [word(FrameKind.FILE, offset), 7n]),
        ),
      );
      await subject.symbolizeFrames();
      return namesOf(frames);
    };
    expect(await name(0x110n, 0x210n)).toEqual(['f256', 'f512']);
    expect(await name(0x100n, 0x1ffn, 0x2ffn, 0x300n)).toEqual(['f256', 'f256', 'f512', 'f768']);
    expect(asked).toEqual([[0x110, 0x210], [0x300]]);
    subject.renameFile(toFileKey('0000000000000007'));
    expect(await name(0x1f0n)).toEqual(['f256']);
    expect(asked).toHaveLength(3);
  });

  it('forgets frames that are named for now as it forgets others: past so many of them', () => {
    const native: NativeSource = { locate: () => undefined, nameOf: () => '', resolve: async () => [] };
    const kernel: KernelSource = {
      locate: () => ({ mapping: emptyMapping(), address: 0, name: '', mayChange: false }),
    };
    const late = runtimesOf((frame) => ({ ...runtimes.name(frame), isForNow: true }));
    const anonymous = new JitFrames({ proc: '/nonexistent' });
    const subject = new FrameResolver(native, kernel, late, anonymous, {}, 10);
    const frame = (i: number) => traceOf(0, [word(FrameKind.V8, BigInt(i)), 1n]);
    for (let again = 0; again < 100; again++) framesOf(subject, frame(0));
    expect(subject.frameCount).toBe(1);
    for (let i = 0; i < 100; i++) framesOf(subject, frame(i));
    expect(subject.frameCount).toBeLessThan(12);
  });

  it('makes a step of each frame of a runtime, which may have to be read out of a process', () => {
    const words = Array.from({ length: 3 }, (_, i) => [word(FrameKind.V8, BigInt(i)), 1n]).flat();
    const steps = resolver().framesOf(traceOf(0, words));
    for (let i = 0; i < 3; i++) expect(steps.next().done).toBe(false);
    expect(steps.next().done).toBe(true);
  });

  it('ends at a file word without its key', () => {
    expect(framesOf(resolver(), traceOf(0, [word(FrameKind.FILE, 1n)]))).toEqual([]);
  });
});
