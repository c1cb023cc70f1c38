/** JavaScript stacks of real Nodes, in each of V8's tiers, compared with the program's known chain of calls. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import { findNodes } from './nodes.ts';

const SCRIPT = join(import.meta.dirname, 'v8/chain.cjs');
const SAMPLES = 60;
const TIERS: readonly { tier: string; flags: string[] }[] = [
  { tier: 'interpreted', flags: ['--no-opt', '--no-sparkplug'] },
  { tier: 'baseline', flags: ['--always-sparkplug', '--no-opt'] },
  { tier: 'optimized, leaf inlined', flags: [] },
];
/** Leaf first: name and line; the leaf's own line changes. */
const CHAIN = [
  'leaf',
  'c chain.cjs:11',
  '<anonymous> chain.cjs:16',
  'map',
  'b chain.cjs:16',
  'a chain.cjs:20',
  'tick chain.cjs:24',
];

/** Samples by the JavaScript functions up to `tick`, inlined ones included, of one process. */
function chains(recording: Recording, pid: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const profile of recording.profiles) {
    for (const sample of profile.samples) {
      if (profile.processes[sample.process]!.pid !== pid) continue;
      const lines = [...profile.stacks[sample.stack]!].flatMap((at) => {
        const { frameType, lines } = profile.locations[at]!;
        return frameType === 'v8js' ? lines : [];
      });
      const texts = lines.map(({ func, line }, i) => {
        const { name, filename } = profile.functions[func]!;
        return i === 0 || filename === '' ? name : `${name} ${filename.split('/').at(-1)}:${line}`;
      });
      const end = texts.findIndex((text) => text.startsWith('tick '));
      const text = texts.slice(0, end + 1).join('\n');
      counts.set(text, (counts.get(text) ?? 0) + sample.count);
    }
  }
  return counts;
}

const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((x, y) => x + y, 0);

describe.skipIf(missingRights).each(missingRights ? [] : findNodes())('$title', ({ path }) => {
  let recording: Recording;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
  });

  afterAll(async () => {
    await recording?.stop();
  });

  it.each(TIERS)('$tier', async ({ flags }) => {
    const expected = CHAIN.join('\n');
    child = spawn('nice', ['-n', '19', path, ...flags, SCRIPT], { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      const pid = toPid(child.pid!);
      recording.controller.addTarget(pid);
      await recording.until(() => chains(recording, pid).has(expected));
      recording.clear();
      await recording.until(() => sum(chains(recording, pid)) >= SAMPLES);
      const counts = chains(recording, pid);
      const right = (counts.get(expected) ?? 0) / sum(counts);
      const others = [...counts].filter(([text]) => text !== expected).slice(0, 3);
      expect(right, `expected\n${expected}\nbut also\n${others.join('\n\n')}`).toBeGreaterThanOrEqual(0.95);
    } finally {
      child.kill('SIGKILL');
      recording.clear();
    }
  });
});
