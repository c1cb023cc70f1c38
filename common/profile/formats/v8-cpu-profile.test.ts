import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Profile } from '../model/profile.ts';
import { readProfile } from './formats.ts';

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** `root;leaf` and what it adds up to. */
function stacksOf(profile: Profile): Record<string, number> {
  const nameOf = (location: number): string =>
    profile.functions[profile.locations[location]!.lines[0]!.func]!.name;
  return Object.fromEntries(
    profile.samples.map(({ stack, value }) => [
      [...profile.stacks[stack]!].reverse().map(nameOf).join(';'),
      value,
    ]),
  );
}

const frame = (functionName: string, url = 'file:///app/a.js', lineNumber = 4) => ({
  ...{ functionName, url, lineNumber, columnNumber: 2, scriptId: '1' },
});
const PROFILE = {
  nodes: [
    { id: 1, callFrame: frame('(root)', '', -1), children: [2, 3, 5] },
    { id: 2, callFrame: frame('main'), children: [4] },
    { id: 3, callFrame: frame('(idle)', '', -1) },
    { id: 4, callFrame: frame('') },
    { id: 5, callFrame: frame('(garbage collector)', '', -1) },
  ],
  ...{ startTime: 1000, endTime: 8000, samples: [2, 4, 3, 4, 5], timeDeltas: [100, 1000, 2000, 500, 400] },
};

it('gives each stack the time until the next sample, and idle time to none', () => {
  const profile = readProfile('a.cpuprofile', bytesOf(PROFILE));
  expect(stacksOf(profile)).toEqual({
    main: 1_000_000,
    'main;(anonymous)': 2_400_000,
    '(garbage collector)': 3_000_000,
  });
  const [main] = profile.locations.filter(({ lines }) =>
    lines.some(({ func }) => profile.functions[func]!.name === 'main'),
  );
  expect(main).toMatchObject({ frameType: 'v8js', lines: [{ line: 5, column: 3 }] });
  expect(profile.functions.map(({ filename }) => filename)).toContain('/app/a.js');
});

const CHUNKS = [
  { ph: 'M', pid: 7, tid: 8, name: 'thread_name', args: { name: 'CrRendererMain' } },
  { ph: 'X', pid: 7, tid: 8, name: 'RunTask', ts: 0, dur: 9000 },
  { ph: 'P', pid: 7, tid: 8, id: '0x1', name: 'Profile', ts: 1, args: { data: { startTime: 1 } } },
  ...[
    { ts: 9, cpuProfile: { samples: [2, 1] }, timeDeltas: [300, 200] },
    {
      ts: 5,
      cpuProfile: {
        nodes: [
          { id: 1, callFrame: frame('main') },
          { id: 2, parent: 1, callFrame: frame('leaf') },
        ],
        samples: [1],
      },
      timeDeltas: [50],
    },
  ].map(({ ts, ...data }) => ({
    ...{ ph: 'P', pid: 7, tid: 9, id: '0x1', name: 'ProfileChunk', ts, args: { data } },
  })),
];

it("reads the samples of Chrome's traces, of the thread that they were taken of", () => {
  const profile = readProfile('a.trace.json', bytesOf({ traceEvents: CHUNKS }));
  expect(stacksOf(profile)).toEqual({ main: 300_000, 'main;leaf': 200_000 });
  expect(profile.samples[0]).toMatchObject({ tid: 8, threadName: 'CrRendererMain' });
});

it('reads a list of events that lacks its end', () => {
  const lines = CHUNKS.map((event) => JSON.stringify(event));
  for (const end of [',\n', '\n']) {
    const profile = readProfile('a.trace.json', Buffer.from(`[${lines.join(',\n')}${end}`));
    expect(stacksOf(profile)).toEqual({ main: 300_000, 'main;leaf': 200_000 });
  }
});

it.each([
  ['are not there', { ...PROFILE, samples: [77], timeDeltas: [0, 1] }, 'node 77 is not among the 5'],
  [
    'call themselves',
    {
      ...PROFILE,
      nodes: [
        { id: 2, callFrame: frame('a'), children: [4] },
        { id: 4, callFrame: frame('b'), children: [2] },
      ],
    },
    'is its own caller',
  ],
])('says which nodes %s', (_what, profile, message) => {
  expect(() => readProfile('a.cpuprofile', bytesOf(profile))).toThrow(message);
});

it("reads what this machine's Node.js writes", () => {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-cpuprofile-'));
  try {
    writeFileSync(
      join(folder, 'spin.cjs'),
      'function spin() { for (const end = Date.now() + 400; Date.now() < end; ); }\nspin(); setTimeout(() => {}, 300);',
    );
    execFileSync(process.execPath, ['--cpu-prof', 'spin.cjs'], { cwd: folder });
    const name = readdirSync(folder).find((one) => one.endsWith('.cpuprofile'))!;
    const stacks = Object.entries(stacksOf(readProfile(name, readFileSync(join(folder, name)))));
    const spun = stacks.filter(([stack]) => /;spin(;|$)/.test(stack));
    const milliseconds = spun.reduce((sum, [, value]) => sum + value, 0) / 1e6;
    expect(milliseconds).toBeGreaterThan(300);
    const whole = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    expect(stacks.reduce((sum, [, value]) => sum + value, 0) / 1000).toBeLessThan(
      whole.endTime - whole.startTime - 200_000,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
