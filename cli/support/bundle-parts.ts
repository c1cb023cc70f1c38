/** What a support bundle is made of: each part is text, and where it can't be had the reason why. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, release, totalmem } from 'node:os';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { productVersion } from '../program/program.ts';

export interface BundlePart {
  name: string;
  text(): string | Promise<string>;
}

const MAX_CHARS = 4 << 20;
const COMMAND_MS = 20_000;
const LOG_LINES = '5000';
const UNITS = ['everyframe-agent', 'everyframe-collector'];

const read = (path: string): string => readFileSync(path, 'utf8').slice(0, MAX_CHARS);

/** One that fails is told in its place. */
export async function textOf({ text }: BundlePart): Promise<string> {
  try {
    return (await text()).slice(-MAX_CHARS);
  } catch (error) {
    return `not available: ${(error as Error).message}\n`;
  }
}

async function run(command: string, ...args: string[]): Promise<string> {
  try {
    const options = { timeout: COMMAND_MS, maxBuffer: MAX_CHARS };
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Error(
      `there is no ${command} here: logs of a container are had with \`kubectl logs\` or \`podman logs\``,
    );
  }
}

export const versions = (): string =>
  [
    `everyframe: ${productVersion()}`,
    `node: ${process.version}`,
    `kernel: ${release()} ${arch()}`,
    `cpus: ${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    `memory: ${Math.round(totalmem() / 2 ** 20)} MiB`,
    '',
    // an image may have none
    attempt(() => read('/etc/os-release')),
  ].join('\n');

const SYSCTLS = [
  ...['perf_event_paranoid', 'kptr_restrict', 'unprivileged_bpf_disabled', 'bpf_stats_enabled'],
  ...['perf_event_max_stack', 'perf_event_mlock_kb', 'perf_cpu_time_max_percent'],
].map((name) => `kernel/${name}`);

/** Settings of the kernel and how it was built, as far as sampling depends on them. */
export function kernelFacts(): string {
  const values = [...SYSCTLS, 'net/core/bpf_jit_enable'].map((name) => {
    try {
      return `${name} = ${read(`/proc/sys/${name}`).trim()}`;
    } catch (error) {
      return `${name}: ${(error as NodeJS.ErrnoException).code}`;
    }
  });
  const facts = ['/proc/version', '/proc/self/status', '/proc/self/cgroup', '/sys/kernel/security/lockdown'];
  const files = facts.map((path) => `# ${path}\n${attempt(() => read(path))}`);
  const options = attempt(() =>
    (
      kernelConfig().match(
        /^CONFIG_(?:.*BPF|PERF_EVENTS|DEBUG_INFO_BTF|KALLSYMS|FTRACE|KPROBES|UPROBES|PREEMPT).*$/gm,
      ) ?? []
    ).join('\n'),
  );
  return [...values, '', ...files, '# configuration', options, ''].join('\n');
}

function kernelConfig(): string {
  try {
    return gunzipSync(readFileSync('/proc/config.gz')).toString();
  } catch {
    return read(`/boot/config-${release()}`);
  }
}

function attempt(make: () => string): string {
  try {
    return make();
  } catch (error) {
    return `not available: ${(error as Error).message}`;
  }
}

/** Of variables that concern it: names only. */
export const environmentNames = (env: NodeJS.ProcessEnv): string =>
  `${Object.keys(env)
    .filter((name) =>
      /^(?:EVERYFRAME|OTEL|DEBUGINFOD|NODE|SSL_CERT|[A-Za-z]+_proxy$|[A-Z]+_PROXY$)/.test(name),
    )
    .sort()
    .join('\n')}\n`;

/** The last lines of both services. */
export const journalParts: readonly BundlePart[] = UNITS.flatMap((unit) => [
  {
    name: `logs/${unit}.log`,
    text: () => run('journalctl', '--no-pager', '-u', unit, '-n', LOG_LINES, '-o', 'short-iso'),
  },
  { name: `logs/${unit}.status`, text: () => run('systemctl', 'show', '--no-pager', unit) },
]);

/** What a service counts, at its --metrics-address. */
export const metricsPart = (name: string, address: string | undefined): BundlePart => ({
  name: `counters/${name}.txt`,
  text: async () => {
    if (address === undefined) throw new Error('--metrics-address is not set');
    const host = address.replace(/^(?:0\.0\.0\.0|\[::\])?:/, '127.0.0.1:');
    const response = await fetch(`http://${host}/metrics`, { signal: AbortSignal.timeout(COMMAND_MS / 4) });
    return (await response.text()).slice(0, MAX_CHARS);
  },
});
