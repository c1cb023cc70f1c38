/** A TypeScript program, compiled in several ways and run: its frames are those of what was written. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { buildSync } from 'esbuild';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

const SOURCE = join(import.meta.dirname, 'source-maps/server.ts');
const SAMPLES = 40;
const lineOf = (text: string): number => {
  const source = readFileSync(SOURCE, 'utf8');
  return source.slice(0, source.indexOf(text)).split('\n').length;
};
/** Leaf first; the leaf's own line changes. */
const WRITTEN = [
  'hash server.ts',
  `digest server.ts:${lineOf('hash(rounds, seed as')}`,
  `handle server.ts:${lineOf('digest(this')}`,
  `tick server.ts:${lineOf('request.handle')}`,
].join('\n');

/** Ways to compile; each gives the path to run. */
const KINDS: Readonly<Record<string, (folder: string) => string>> = {
  'tsc, a file that is named'(folder) {
    const { outputText, sourceMapText } = ts.transpileModule(readFileSync(SOURCE, 'utf8'), {
      fileName: SOURCE,
      compilerOptions: { sourceMap: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS },
    });
    writeFileSync(join(folder, 'server.js'), outputText);
    writeFileSync(join(folder, 'server.js.map'), sourceMapText!);
    return join(folder, 'server.js');
  },
  'esbuild, minified, in the script itself'(folder) {
    const outfile = join(folder, 'inline.cjs');
    buildSync({ entryPoints: [SOURCE], outfile, platform: 'node', minify: true, sourcemap: 'inline' });
    return outfile;
  },
  'esbuild, minified, a file beside that is not named'(folder) {
    const outfile = join(folder, 'beside.cjs');
    buildSync({ entryPoints: [SOURCE], outfile, platform: 'node', minify: true, sourcemap: 'external' });
    return outfile;
  },
};

const chainOf = (frames: ScriptFrame[]): string =>
  frames
    .slice(0, 4)
    .map(({ name, file, line }, i) => (i === 0 ? `${name} ${file}` : `${name} ${file}:${line}`))
    .join('\n');

describe.skipIf(missingRights)('a program that was compiled from TypeScript', () => {
  const running: ChildProcess[] = [];
  let folder: string;
  let recording: Recording;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-maps-'));
    recording = await Recording.start({ targets: [] });
  });

  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await recording?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(path: string): Promise<number> {
    const child = spawn('nice', ['-n', '19', process.execPath, path], { stdio: 'ignore' });
    running.push(child);
    recording.controller.addTarget(toPid(child.pid!));
    return child.pid!;
  }

  const chains = (pid: number) => countBy(scriptStacks(recording, pid, 'v8js'), chainOf);

  it.each(Object.keys(KINDS))('by %s', async (kind) => {
    const pid = await start(KINDS[kind]!(folder));
    const seen = () => [...chains(pid)].map(String).join('\n\n');
    await recording
      .until(() => chains(pid).has(WRITTEN))
      .catch(() => expect.fail(`expected\n${WRITTEN}\nbut there is\n${seen()}`));
    recording.clear();
    await recording.until(() => sum(chains(pid)) >= SAMPLES);
    expect((chains(pid).get(WRITTEN) ?? 0) / sum(chains(pid)), seen()).toBeGreaterThanOrEqual(0.9);
    const generated = recording.profiles.flatMap(({ locations }) =>
      locations.flatMap((location) => location.generated ?? []),
    );
    expect(generated.join('\n')).toMatch(/\/(?:server\.js|inline\.cjs|beside\.cjs):\d+:\d+/);
    running.pop()?.kill('SIGKILL');
    recording.clear();
  });

  it('but whose map leads out of its root, or is not a file, is shown as it runs', async () => {
    const script = readFileSync(KINDS['tsc, a file that is named']!(folder), 'utf8');
    const path = join(folder, 'server.js');
    rmSync(`${path}.map`);
    symlinkSync('/dev/zero', `${path}.map`);
    writeFileSync(path, script);
    const pid = await start(path);
    const runs = (text: string): boolean => text.startsWith('hash server.js\n');
    await recording.until(() => [...chains(pid).keys()].some(runs));
    await recording.until(() => recording.controller.counters()['sourceMaps.refused']! > 0);
  });
});
