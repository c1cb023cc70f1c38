/**
 * Programs with V8 in them that no table of the agent's knows, as packages of npm and PyPI have them: their JavaScript has
 * no names, a person is told once of which file and why, and no stack suffers from it. In the whole matrix only.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';
import { fetchProgram } from './nodes.ts';
import { isWholeMatrix, ROOTS } from './package-roots.ts';

interface Embedder {
  title: string;
  /** Of the file with V8. */
  file: RegExp;
  /** `directory`: for what it reads. */
  command(directory: string): [string, ...string[]];
}

const BUSY = `function leaf(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum + i * n) | 0; return sum; }
function busy() { for (;;) leaf(1e5); }
busy();
`;
const WORKERD = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .busy)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const busy :Workerd.Worker = (modules = [(name = "busy", esModule = embed "busy.mjs")], compatibilityDate = "2024-01-01");
`;
const SAMPLES = 50;
const LIMIT_MS = 90_000;

function findEmbedders(): Embedder[] {
  if (missingRights || !isWholeMatrix) return [];
  return [...findWorkerd('1.20261117.1'), ...findMiniRacer('0.14.1')];
}

/** Cloudflare's server for JavaScript. */
function findWorkerd(version: string): Embedder[] {
  const name = '@cloudflare/workerd-linux-64';
  const path = fetchProgram({ folder: `workerd/${version}`, name, version, program: 'bin/workerd' });
  if (path === undefined) return [];
  const command = (directory: string): [string, ...string[]] => {
    writeFileSync(join(directory, 'busy.mjs'), BUSY);
    writeFileSync(join(directory, 'busy.capnp'), WORKERD);
    return [path, 'serve', join(directory, 'busy.capnp')];
  };
  return [{ title: `workerd ${version} (npm)`, file: /\/workerd$/, command }];
}

/** V8 as a library of Python's. */
function findMiniRacer(version: string): Embedder[] {
  const folder = join(ROOTS, `mini-racer/${version}`);
  if (!existsSync(folder)) {
    mkdirSync(join(ROOTS, 'mini-racer'), { recursive: true });
    const args = ['-m', 'pip', 'install', '-q', '--no-deps', '--target', folder, `mini-racer==${version}`];
    const { status, stderr } = spawnSync('python3', args, { encoding: 'utf8', timeout: 300_000 });
    if (status !== 0) {
      rmSync(folder, { recursive: true, force: true });
      console.log(`skipped: mini-racer ${version} could not be had: ${stderr?.trim().split('\n').at(-1)}`);
      return [];
    }
  }
  const script = `import sys\nsys.path.insert(0, sys.argv[1])\nfrom py_mini_racer import MiniRacer\nMiniRacer().eval(sys.argv[2])`;
  return [
    {
      title: `mini-racer ${version} (PyPI)`,
      file: /\/libmini_racer\.so$/,
      command: () => ['python3', '-c', script, folder, BUSY],
    },
  ];
}

/** Since the program has its table. */
const isScript = ({ frames }: Stack): boolean =>
  frames[0]!.startsWith('[anon]') && !frames.at(-1)!.includes('not ready yet');

/** One that is skipped, where there is none. */
const NONE: Embedder = { title: 'embedders of V8', file: /$/, command: () => ['true'] };
const embedders = findEmbedders();
if (!isWholeMatrix) console.log('skipped: embedders of V8, only `npm run test:runtimes` fetches them');

describe.skipIf(embedders.length === 0).each(embedders.length === 0 ? [NONE] : embedders)(
  'JavaScript in $title',
  ({ command, file }) => {
    let directory: string;
    let child: ChildProcess;
    let recording: Recording;

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'everyframe-embedder-'));
      const [program, ...args] = command(directory);
      child = spawn('nice', ['-n', '19', program, ...args], { stdio: 'ignore' });
      recording = await Recording.start({ targets: [toPid(child.pid!)] });
    });

    afterAll(async () => {
      child?.kill('SIGKILL');
      await recording?.stop();
      rmSync(directory, { recursive: true, force: true });
    });

    it('has no names, which is told once with file and reason, and its stacks are whole', async () => {
      await recording.until((stacks) => total(stacks.filter(isScript)) >= SAMPLES, LIMIT_MS);
      const told = recording.warnings.filter((text) => text.includes(' V8 '));
      expect(told).toEqual([
        expect.stringMatching(
          /: V8 of a build that is not described in the file \(started with --js-flags=--perf-basic-prof/,
        ),
      ]);
      expect(told[0]!.split(': ')[0]).toMatch(file);
      expect(recording.controller.counters()['executables.runtimesUnsupported']).toBe(1);
      const scripts = recording.stacks().filter(isScript);
      expect(share(scripts, ({ frames }) => /^(_start|clone3?)$/.test(frames.at(-1)!))).toBeGreaterThan(0.95);
      const types = recording.profiles.flatMap(({ locations }) =>
        locations.map(({ frameType }) => frameType),
      );
      expect(types).not.toContain('v8js');
    });
  },
);
