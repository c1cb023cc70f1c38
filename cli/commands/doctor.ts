import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { packageRoot } from '../../agent/base/package-root.ts';
import { type Check, checkHost } from '../../agent/host/host-checks.ts';
import { readHostFacts } from '../../agent/host/host-facts.ts';
import { addExamples } from '../program/examples.ts';

/** Tries the real thing, such as opening a perf event; runs only if no earlier check is fatal. */
export type Probe = () => Check[] | Promise<Check[]>;

const BUILT_FILES = [
  'build/everyframe.bpf.o',
  'build/everyframe.node',
  'build/everyframe-reader',
  'build/worker-launcher',
  'build/workers/worker.cjs',
  'build/web/index.html',
];
/** In the bundles of a release, which has a Node of its own. */
const BUNDLED_FILE = 'build/otlp.js';
const NODE_OF_RELEASE = 'lib/node';

export function registerDoctor(program: Command, probes: readonly Probe[] = []): void {
  const command = program
    .command('doctor')
    .description('say whether this machine can be profiled, what is lost, and how to change that')
    .option('--json', 'one JSON object a line: name, status, message, fix')
    .option(
      '--fix-hints',
      'only what to do, as a shell script: commands, and as comments what no command can do',
    )
    .action(async (options: { json?: boolean; fixHints?: boolean }) => {
      const checks = await runChecks(probes);
      const format = options.fixHints ? formatFixes : options.json ? formatJson : formatText;
      process.stdout.write(format(checks));
      if (isFatal(checks)) process.exitCode = 1;
    });
  addExamples(command, [
    ['sudo everyframe doctor', "what can be profiled with root's rights"],
    ['everyframe doctor --json', 'for a script; exits with 1 if something is fatal'],
  ]);
}

/** Host, build, then the probes. */
export async function runChecks(probes: readonly Probe[], root = packageRoot()): Promise<Check[]> {
  const checks = [...checkHost(readHostFacts()), checkBuild(root)];
  for (const probe of probes) {
    if (isFatal(checks)) break;
    checks.push(...(await probe()));
  }
  return checks;
}

export function checkBuild(root: string): Check {
  const isThere = (file: string): boolean => existsSync(join(root, file));
  const files = isThere(NODE_OF_RELEASE) ? BUILT_FILES : [...BUILT_FILES, BUNDLED_FILE];
  const missing = files.filter((file) => !isThere(file));
  if (missing.length === 0) return { name: 'build', status: 'ok', message: 'complete' };
  return {
    name: 'build',
    status: 'fatal',
    message: `not built: ${missing.join(', ')} missing in ${root}`,
    fix: 'npm run setup',
  };
}

export const formatJson = (checks: readonly Check[]): string =>
  checks.map((check) => `${JSON.stringify(check)}\n`).join('');

/** `STATUS NAME MESSAGE` in columns, the fix on a line of its own, and a sentence that sums up. */
export function formatText(checks: readonly Check[]): string {
  const width = Math.max(0, ...checks.map((check) => check.name.length));
  const lines = checks.flatMap(({ status, name, message, fix }) => [
    `${status.padEnd(8)}  ${name.padEnd(width)}  ${message}`,
    ...(fix === undefined ? [] : [`${' '.repeat(8)}  ${' '.repeat(width)}  fix: ${fix}`]),
  ]);
  return `${lines.join('\n')}\n\n${summarise(checks)}\n`;
}

/** What a shell runs; what follows in parentheses is for other ways to start it. */
const COMMAND = /^((?:sudo |sysctl |mount |ulimit |npm ).*?)(?: \((.*)\))?$/;

/** Commands last until the next boot: those of sysctl are also kept. */
export function formatFixes(checks: readonly Check[]): string {
  const lines = checks.flatMap(({ status, name, message, fix }) => {
    if (fix === undefined || status === 'ok') return [];
    const [, command, otherwise] = COMMAND.exec(fix) ?? [];
    if (command === undefined) return [`# ${status}: ${name}: ${message}`, `#   ${fix}`];
    const setting = /sysctl -w (\S+)/.exec(command)?.[1];
    return [
      `# ${status}: ${name}: ${message}`,
      command,
      ...(setting === undefined ? [] : [`echo '${setting}' | sudo tee -a /etc/sysctl.d/60-everyframe.conf`]),
      ...(otherwise === undefined ? [] : [`#   or ${otherwise}`]),
    ];
  });
  return lines.length === 0 ? '# nothing to do\n' : `${lines.join('\n')}\n`;
}

function summarise(checks: readonly Check[]): string {
  const count = (status: Check['status']) => checks.filter((check) => check.status === status).length;
  const fatal = count('fatal');
  if (fatal > 0) return `everyframe cannot run here: ${fatal} fatal.`;
  const degraded = count('degraded');
  return degraded > 0
    ? `everyframe can run here, with less: ${degraded} degraded.`
    : 'everyframe can run here.';
}

const isFatal = (checks: readonly Check[]): boolean => checks.some((check) => check.status === 'fatal');
