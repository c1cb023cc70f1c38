/** OTEP 4719: what a process publishes of itself is its service's name and attributes, also once it has changed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { readAttributes } from '../common/profile/model/attributes.ts';
import type { Process } from '../common/profile/model/profile.ts';
import { compile, missingRights } from './support/fixtures.ts';
import { processContext } from './support/process-context.ts';
import { Recording } from './support/recording.ts';

describe.skipIf(missingRights)('a process context', () => {
  let child: ChildProcess | undefined;

  afterEach(() => void child?.kill('SIGKILL'));

  it.each(['memfd', 'anon'])('in %s memory', async (kind) => {
    const program = compile(`process-context-${kind}`, 'gcc', ['-O1', '-pthread'], 'process-context.c');
    const first = {
      'service.name': 'shop',
      'service.version': '1.2',
      'process.pid': '1',
      'host.name': 'elsewhere',
    };
    const started = spawn(program, [kind, processContext(first)], { stdio: ['pipe', 'ignore', 'inherit'] });
    child = started;
    const exited = new Promise<number | null>((resolve) => started.once('exit', resolve));
    const recording = await Recording.start({ targets: [toPid(started.pid!)] });
    const latest = (): Process | undefined =>
      recording.profiles.at(-1)?.processes.find(({ pid }) => pid === started.pid);
    const isPublished = (name: string) => () => latest()?.serviceName === name || started.exitCode !== null;
    try {
      await recording.until(isPublished('shop'));
      if (started.exitCode === 3) {
        console.log('skipped: memory that no file backs has no name here (CONFIG_ANON_VMA_NAME)');
        return;
      }
      expect(Object.fromEntries(readAttributes(latest()!.attributes!))).toEqual({ 'service.version': '1.2' });
      started.stdin.write(
        `${processContext({ 'service.name': 'till', 'deployment.environment.name': 'test' })}\n`,
      );
      await recording.until(isPublished('till'));
      expect(Object.fromEntries(readAttributes(latest()!.attributes!))).toEqual({
        'deployment.environment.name': 'test',
      });
    } finally {
      await recording.stop();
      started.kill('SIGKILL');
      await exited;
    }
  });
});
