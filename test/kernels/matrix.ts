/** One kernel: gets it, boots it with the product inside, and judges what the guest printed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { packageRoot } from '../../agent/base/package-root.ts';
import type { ProgramFigures } from '../../agent/tracer/program-figures.ts';
import { readProfile } from '../../common/profile/formats/formats.ts';
import { muslForArm64, prepareArm64Guest } from './arm64-guest.ts';
import {
  judgeStacks,
  KNOWN_PROGRAMS,
  type KnownProgram,
  type NamedSample,
  namedSamples,
  type ProgramStacks,
} from './known-stacks.ts';
import { findGrowth, type KernelFigures, kernelOf, parseTable } from './ratchet.ts';
import {
  type Architecture,
  type BootOptions,
  boot,
  type Console,
  EMULATORS,
  type Image,
} from './virtual-machine.ts';

/** Debian's suites and Ubuntu's, oldest kernel first: 5.10, 5.15, 6.1, 6.8, 6.12, 7.0, and whatever sid has today. */
export const SUITES = ['bullseye', 'jammy', 'bookworm', 'noble', 'trixie', 'resolute', 'sid'] as const;
export type Suite = (typeof SUITES)[number];
const UBUNTU_SUITES: readonly Suite[] = ['jammy', 'noble', 'resolute'];

/** Ubuntu's mirror has amd64 only. */
export const suitesOf = (architecture: Architecture): Suite[] =>
  SUITES.filter((suite) => architecture === 'amd64' || !UBUNTU_SUITES.includes(suite));

export const TABLE = join(packageRoot(), 'docs/kernels.md');
const SOURCES = join(packageRoot(), 'test/kernels');
const FETCH_LIMIT_MS = 300_000;
/** Debian's, which goes into the guest with what it needs of its library. */
const PYTHON = '/usr/bin/python3';
const PERL = '/usr/bin/perl';
const MAX_PROFILE_BYTES = 256 << 20;
const WHOLE_SHARE = 0.98;
/** guest-init records until it has as many. */
const MIN_SAMPLES = 60;
const CONSOLE_LINES = 40;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
/** For C, and for C++ where the product itself is cross-compiled. */
const COMPILERS: Readonly<Record<Architecture, readonly [string, ...string[]]>> = {
  amd64: ['gcc'],
  arm64: ['aarch64-linux-gnu-gcc', 'aarch64-linux-gnu-g++'],
};

export interface Verdict {
  release: string;
  seconds: number;
  figures: KernelFigures[];
  stacks: ProgramStacks[];
  /** The sentence that sums up. */
  doctor: string;
  /** Each a sentence; none: all is well. */
  problems: string[];
}

/** Tools that are not installed. */
export const missingTools = (architecture: Architecture): string[] =>
  [
    EMULATORS[architecture].command,
    ...COMPILERS[architecture],
    ...(architecture === 'amd64' ? ['busybox'] : ['make', 'npm', 'readelf']),
    'cpio',
    'apt-get',
  ].filter((tool) => spawnSync('which', [tool]).status !== 0);

/** Path of the suite's kernel; throws with what apt says where it can't be had. */
export function fetchKernel(suite: Suite, architecture: Architecture): string {
  const fetched = spawnSync(join(SOURCES, 'fetch-kernel.sh'), [suite, architecture], {
    encoding: 'utf8',
    timeout: FETCH_LIMIT_MS,
  });
  if (fetched.status === 0) return fetched.stdout.trim();
  const reason = fetched.stderr.trim().split('\n').slice(-3).join('; ');
  throw new Error(`the kernel of ${suite} can't be fetched: ${reason}`);
}

/** The C library's, and where runtimes are unwound theirs; `all`: also musl's and, where Go is installed, its. */
export const knownPrograms = (architecture: Architecture, all: boolean): KnownProgram[] =>
  KNOWN_PROGRAMS.filter(({ language, architecture: only }) => {
    if (only !== undefined && only !== architecture) return false;
    if (language === undefined || language === 'node') return true;
    if (language === 'python') return architecture === 'arm64' || existsSync(PYTHON);
    if (language === 'perl') return architecture === 'arm64' || existsSync(PERL);
    return all && (language === 'musl' || spawnSync('go', ['version']).status === 0);
  });

/** Compiles the known programs and packs the machine that the kernels boot, in a folder that goes with this process. */
export function buildInitramfs(architecture: Architecture, all = false): string {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-kernels-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const guest = architecture === 'arm64' ? prepareArm64Guest() : {};
  const known = knownPrograms(architecture, all);
  const programs = known.map((program) => compileFor(architecture, program, folder));
  const initramfs = join(folder, 'initramfs.cpio');
  const has = (wanted: string): boolean => known.some(({ language }) => language === wanted);
  const env = {
    ...process.env,
    ...(has('python') ? { PYTHON } : {}),
    ...(has('perl') ? { PERL } : {}),
    ...guest,
  };
  execFileSync(join(SOURCES, 'make-initramfs.sh'), [initramfs, ...programs], { stdio: 'pipe', env });
  return initramfs;
}

function compileFor(architecture: Architecture, program: KnownProgram, folder: string): string {
  const { name, source, language, flags, arm64Flags } = program;
  const out = join(folder, name);
  const path = join(packageRoot(), 'test', source);
  const compiler = COMPILERS[architecture][0];
  if (language === 'node' || language === 'python' || language === 'perl') copyFileSync(path, out);
  else if (language === 'go' || language === 'cgo') {
    const cgo = { CGO_ENABLED: language === 'cgo' ? '1' : '0', CC: compiler };
    const env = { ...process.env, GOARCH: architecture, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', ...cgo };
    execFileSync('go', ['build', ...flags, '-o', out, path], { cwd: folder, env, stdio: 'pipe' });
  } else if (language === 'musl') {
    const [command, ...args] = architecture === 'arm64' ? muslForArm64(compiler) : ['musl-gcc'];
    execFileSync(command!, [...flags, '-o', out, path, ...args]);
  } else {
    const all = [...flags, ...((architecture === 'arm64' && arm64Flags) || [])];
    execFileSync(compiler, [...all, '-o', out, path]);
  }
  return out;
}

export interface CheckOptions extends BootOptions {
  /** What the programs may cost, from {@link knownFigures}. */
  known: KernelFigures[];
  /** As in {@link buildInitramfs}. */
  all?: boolean;
}

export const knownFigures = (): KernelFigures[] => parseTable(readFileSync(TABLE, 'utf8'));

export const checkKernel = async (options: CheckOptions): Promise<Verdict> =>
  judge(await boot(options), options);

/** Of what a guest printed, however far it came. */
export function judge(console: Console, options: Omit<CheckOptions, keyof Image>): Verdict {
  const { sections, failure, seconds } = console;
  const section = (name: string): string[] => sections.get(name) ?? [];
  const release = section('kernel')[0] ?? 'unknown';
  const figures = section('programs')
    .filter((line) => line.startsWith('{'))
    .map((line) => ({ kernel: kernelOf(release), ...(JSON.parse(line) as ProgramFigures) }));
  const programs = options.programsOnly ? [] : knownPrograms(options.architecture, options.all ?? false);
  const { samples, damage } = readSamples(section('profile'));
  const stacks = programs.map((program) => judgeStacks(program, samples));
  const cpus = section('kernel')[1] ?? 'no CPU';
  const problems = [
    ...(failure ? [failure] : []),
    ...damage,
    ...(cpus === `CPUs: ${options.cpus}` ? [] : [`it was to have ${options.cpus} CPUs, and has ${cpus}`]),
    ...(section('programs').length > 0 && figures.length === section('programs').length
      ? []
      : ['not every BPF program was loaded']),
    ...findGrowth(options.known, figures),
    ...(options.programsOnly || section('doctor').includes('exit code 0')
      ? []
      : ['the doctor found something fatal']),
    ...stacks.flatMap(judgeShare),
  ];
  if (problems.length > 0) problems.push(lastLines(console));
  return { release, seconds, figures, stacks, doctor: section('doctor').at(-2) ?? '', problems };
}

/**
 * `lines`: an OTLP profile, zipped, in base64. It can't be read where the guest ended within it, or where the kernel
 * wrote a message of its own in between: `damage` says so.
 */
function readSamples(lines: readonly string[]): { samples: NamedSample[]; damage: string[] } {
  if (lines.length === 0) return { samples: [], damage: [] };
  try {
    const zipped = Buffer.from(lines.join(''), 'base64');
    const profile = readProfile('guest.otlp', gunzipSync(zipped, { maxOutputLength: MAX_PROFILE_BYTES }));
    return { samples: namedSamples(profile), damage: [] };
  } catch (error) {
    const foreign = lines.filter((line) => !BASE64.test(line)).map((line) => `, not of it: "${line}"`);
    const damage = `the profile of ${lines.length} lines can't be read: ${(error as Error).message}${foreign.join('')}`;
    return { samples: [], damage: [damage] };
  }
}

function judgeShare({ program, samples, whole, others }: ProgramStacks): string[] {
  if (samples < MIN_SAMPLES) return [`${program}: only ${samples} samples`];
  if (whole >= samples * WHOLE_SHARE) return [];
  return [`${program}: ${whole} of ${samples} stacks are whole`, ...describeOthers(others)];
}

const describeOthers = (others: ProgramStacks['others']): string[] =>
  others.map(({ frames, places, count }) => `  ${count} × ${frames.join(';')} ${places.join(', ')}`);

/** What was printed outside of the profile, from the end. */
function lastLines({ sections }: Console): string {
  const lines = [...sections].flatMap(([name, text]) => (name === 'profile' ? [] : text));
  return `the console's last lines:\n    ${lines.slice(-CONSOLE_LINES).join('\n    ')}`;
}

export function describe({ release, seconds, figures, stacks, doctor, problems }: Verdict): string {
  return [
    `Linux ${release}, ${seconds.toFixed(0)} s`,
    ...(doctor ? [`  doctor: ${doctor}`] : []),
    ...figures.map(
      ({ program, verified, loadMs }) =>
        `  program ${program.padEnd(18)} ${String(verified).padStart(8)} instructions verified in ${loadMs.toFixed(1)} ms`,
    ),
    ...stacks.flatMap(({ program, samples, whole, others }) => [
      `  stacks of ${program.padEnd(9)} ${whole} of ${samples} whole`,
      ...describeOthers(others).map((line) => `    not whole: ${line.trim()}`),
    ]),
    ...problems.map((problem) => `  FAILED: ${problem}`),
  ].join('\n');
}
