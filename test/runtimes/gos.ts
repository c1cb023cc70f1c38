/** The Gos to test: the machine's own; in the whole matrix also other releases, those of Debian's suites among them. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { scratchFolder } from '../support/fixtures.ts';
import { goEnvironment, hasToolchain, isGoRelease } from '../toolchains/go-releases.ts';
import { FOLDER } from './folder.ts';
import { isWholeMatrix } from './package-roots.ts';

export interface Go {
  title: string;
  build: TestedBuild;
  /** Path of the program. */
  compile(source: string, flags?: readonly string[]): string;
}

/** Bookworm has 1.19.8, trixie 1.24.4. */
const RELEASES = [
  ...['go1.16.15', 'go1.17.13', 'go1.18.10', 'go1.19.8', 'go1.20.14', 'go1.21.13'],
  ...['go1.22.12', 'go1.23.12', 'go1.24.4', 'go1.25.5', 'go1.27.0'],
];

export function findGos(): Go[] {
  const tools = ['go', ...(isWholeMatrix ? RELEASES : [])];
  return tools.flatMap((tool) => {
    if (hasToolchain(tool)) return [describeGo(tool)];
    console.log(`skipped: ${tool} can't be had`);
    return [];
  });
}

function describeGo(tool: string): Go {
  const env = goEnvironment(tool);
  const said = execFileSync('go', ['version'], { env, encoding: 'utf8' });
  const version = /go version go(\S+)/.exec(said)?.[1] ?? '';
  const series = `Go ${version.split('.').slice(0, 2).join('.')}`;
  return {
    title: `Go ${version}`,
    build: {
      ...{ runtime: 'go', series, version, runtimeVersion: version },
      origin: isGoRelease(tool) ? 'go.dev' : 'installed here',
    },
    compile(source, flags = []) {
      const name = [source, version, ...flags].join('').replaceAll(/[^\w.]/g, '-');
      const out = join(scratchFolder, name);
      const path = join(FOLDER, 'go', source);
      execFileSync('go', ['build', ...flags, '-o', out, path], { env, timeout: 600_000 });
      return out;
    },
  };
}
