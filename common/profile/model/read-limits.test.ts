import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readProfile } from '../formats/formats.ts';
import { ReadLimitError, type ReadLimits } from './read-limits.ts';

const LIMITS: ReadLimits = { maxMemoryBytes: 32 << 20, advice: 'give --max-memory' };
const read = (name: string, bytes: Uint8Array | string) =>
  readProfile(name, typeof bytes === 'string' ? Buffer.from(bytes) : bytes, { limits: LIMITS });

const events = (count: number): string =>
  Array.from({ length: count }, (_, at) => `{"type":"O","frame":0,"at":${at}}`).join();
const stacks = (count: number): string =>
  `{"length":${count},"frame":[${new Array(count).fill(0)}],"prefix":[null,${Array.from({ length: count - 1 }, (_, i) => i)}]}`;
const range = (count: number): string => String(Array.from({ length: count }, (_, i) => i));

/** Small files that would become large: what they are made of, the file, and what the limit names. */
const BOMBS: [kind: string, name: string, make: () => Uint8Array | string, what: RegExp][] = [
  [
    'strings',
    'a.pb.gz',
    () => gzipSync(Buffer.alloc(20 << 20, Buffer.of(0x32, 0))),
    /unpacked bytes|strings/,
  ],
  ['samples', 'a.pb', () => Buffer.alloc(1 << 20, Buffer.of(0x12, 0)), /samples/],
  [
    'labels',
    'a.pb',
    () => Buffer.concat([Buffer.of(0x12, 0x80, 0x80, 0x40), Buffer.alloc(1 << 20, Buffer.of(0x1a, 0))]),
    /samples/,
  ],
  ['zeros', 'a.pb.gz', () => gzipSync(Buffer.alloc(64 << 20)), /unpacked bytes/],
  [
    'nested events',
    'a.speedscope.json',
    () =>
      `{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"evented","name":"x","unit":"none","startValue":0,"events":[${events(20_000)}]}]}`,
    /frames of stacks/,
  ],
  [
    'nested trace events',
    'a.trace.json',
    () =>
      `[${Array.from({ length: 20_000 }, (_, ts) => `{"ph":"X","name":"a","ts":${ts},"dur":${40_000 - 2 * ts}}`)}]`,
    /frames of stacks/,
  ],
  [
    'a chain of stacks',
    'a.firefox.json',
    () =>
      `{"meta":{"preprocessedProfileVersion":48},"threads":[{"stringArray":["a"],"frameTable":{"func":[0]},"funcTable":{"name":[0]},"stackTable":${stacks(20_000)},"samples":{"stack":[${range(20_000)}]}}]}`,
    /frames of stacks/,
  ],
  [
    'threads that read large tables anew',
    'a.firefox.json',
    () =>
      `{"meta":{"preprocessedProfileVersion":60},"shared":{"stringArray":["a"],"frameTable":{"func":[${new Array(5000).fill(0)}]},"funcTable":{"name":[0]}},"threads":[${new Array(2000).fill('{"stackTable":{"frame":[0],"prefix":[null]},"samples":{"stack":[0]}}')}]}`,
    /frames of threads/,
  ],
  ['empty lists', 'a.json', () => `[${'[],'.repeat(400_000)}[]]`, /values/],
  ['packed JSON', 'a.json.gz', () => gzipSync(`[${'{},'.repeat(8_000_000)}{}]`), /values|bytes/],
  [
    'names',
    'a.folded',
    () => Array.from({ length: 60_000 }, (_, i) => `p;f${i} 1\n`).join(''),
    /frames|samples|stack nodes|frames of stacks/,
  ],
  [
    'growing stacks',
    'a.folded',
    () => Array.from({ length: 3000 }, (_, i) => `p${';f'.repeat(i)} 1\n`).join(''),
    /frames of stacks/,
  ],
  ['times', 'a.perf', () => 'a 1/1 5.000000: cycles: \n\t 1185 f (/w)\n\n'.repeat(700_000), /times/],
  ['OTLP of nothing', 'a.otlp', () => Buffer.alloc(9 << 20), /bytes/],
];

describe('a file that would cost more than it may', () => {
  it.each(BOMBS)('is refused before it does: %s in %s', (_kind, name, make, what) => {
    const bytes = make();
    const start = performance.now();
    let error: unknown;
    try {
      read(name, bytes);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ReadLimitError);
    expect((error as ReadLimitError).what).toMatch(what);
    expect((error as Error).message).toMatch(
      /^a\.[\w.]+ would need more than 32 MiB of memory \(at [\d,]+ [a-z ]+\): give --max-memory$/,
    );
    // a machine that does ten other things takes a while
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  it('is not a problem where it is only nested, or one line', () => {
    expect(() => read('a.json', '['.repeat(100_000))).toThrow('nested deeper than 512');
    expect(() => read('a.folded', `${';'.repeat(70 << 20)} 1`)).toThrow(
      /line 1 has more than 64 MiB|would need more/,
    );
    expect(() => read('a.folded', ' '.repeat(1 << 20))).not.toThrow();
  });
});

it('any bytes are a profile or a sentence, whatever they are said to be', () => {
  const names = ['a.pb', 'a.folded', 'a.otlp', 'a.json', 'a.perf', 'a.txt', 'a.pb.gz', 'a.speedscope.json'];
  const json = fc.json({ maxDepth: 5 }).map((text) => Buffer.from(text));
  const known = fc
    .dictionary(
      fc.constantFrom('shared', 'profiles', 'meta', 'threads', 'traceEvents', 'dictionary', 'frames'),
      fc.jsonValue(),
    )
    .map((value) => Buffer.from(JSON.stringify(value)));
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.oneof(fc.uint8Array({ maxLength: 300 }), json, known),
      (name, bytes) => {
        try {
          read(name, bytes);
        } catch (error) {
          expect((error as Error).message).toContain(name);
        }
      },
    ),
    { numRuns: 300 },
  );
});
