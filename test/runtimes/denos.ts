/** Deno of npm's packages, one for each version of V8 that the agent knows without its help: in the whole matrix only. */
import { spawnSync } from 'node:child_process';
import { fetchProgram, type NodeBinary } from './nodes.ts';
import { isWholeMatrix } from './package-roots.ts';

const VERSIONS = ['2.5.7', '2.7.14', '2.8.3', '2.9.6'];
/** The Node whose V8 has the same tiers. */
const LIKE_NODE = 26;
/** Deno's V8 notes where in the source a function's code comes from only after an exception in it: docs/interpreters/v8.md. */
const WITH_POSITIONS = '--no-enable-lazy-source-positions';

export const findDenos = (): NodeBinary[] => (isWholeMatrix ? VERSIONS.flatMap(fetchDeno) : []);

function fetchDeno(version: string): NodeBinary[] {
  const path = fetchProgram({
    folder: `deno/${version}`,
    name: '@deno/linux-x64-glibc',
    version,
    program: 'deno',
  });
  if (path === undefined) return [];
  const { stdout } = spawnSync(path, ['eval', 'console.log(Deno.version.v8)'], { encoding: 'utf8' });
  const commandWith = (flags: readonly string[]): [string, ...string[]] => {
    const all = [WITH_POSITIONS, ...flags].join(',');
    // without what an earlier run has kept of the script's code, which may have no positions
    return [path, 'run', '--allow-all', '--no-code-cache', `--v8-flags=${all}`];
  };
  return [
    {
      title: `Deno ${version} (npm)`,
      command: commandWith([]),
      commandWith,
      place: (script) => script,
      major: LIKE_NODE,
      showsInlined: false,
      build: {
        runtime: 'v8',
        series: `Deno ${version.split('.').slice(0, 2).join('.')}`,
        origin: 'npm',
        version,
        runtimeVersion: stdout.trim().split('.').slice(0, 3).join('.'),
      },
    },
  ];
}
