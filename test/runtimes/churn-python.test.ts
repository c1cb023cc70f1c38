/** Code objects that are freed while they are in a trace: what has a name has its own, never that of its successor. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { unnamedReasonOf } from '../../common/profile/model/unnamed-markers.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import { findPythons } from './pythons.ts';
import { type ScriptFrame, scriptStacks } from './script-frames.ts';

const SCRIPT = join(import.meta.dirname, 'python/churn.py');
const FRAMES = 400;

eachOf(findPythons)('code that is freed in $title', (python) => {
  let recording: Recording;
  let child: ChildProcess;
  let frames: ScriptFrame[] = [];

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    child = spawn('nice', ['-n', '19', ...python.command, python.place(SCRIPT)], { stdio: 'ignore' });
    recording.controller.addTarget(toPid(child.pid!));
    await recording.until(() => {
      const stacks = scriptStacks(recording, child.pid!, 'cpython');
      frames = stacks.flatMap((stack) => stack.frames);
      return frames.filter(({ name }) => name.startsWith('churn_')).length >= FRAMES;
    });
  }, 90_000);

  afterAll(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
  });

  it('has the file and line of its own name', () => {
    const churned = frames.filter(({ name }) => name.startsWith('churn_'));
    for (const { name, file, line } of churned) {
      const number = Number(name.slice('churn_'.length));
      expect(file).toBe(`churn_${number}.py`);
      const first = (number % 500) + 1;
      expect(line >= first && line < first + 4, `${name} at line ${line}`).toBe(true);
    }
    expect(new Set(churned.map(({ name }) => name)).size).toBeGreaterThan(50);
  });

  it('says of the rest that it was freed, and of nothing that it makes no sense', () => {
    const reasons = new Set(frames.flatMap(({ name }) => unnamedReasonOf(name)?.reason ?? []));
    expect([...reasons].filter((reason) => reason !== 'replaced')).toEqual([]);
  });
});
