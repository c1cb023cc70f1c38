/**
 * Command lines of the OpenTelemetry profiler: flags with one dash or two, `-flag=false` for switches, and no command.
 * What has no meaning here is taken, and told once.
 */
import { IGNORED_FLAGS } from '../../agent/settings/ignored-flags.ts';
import { AGENT_SETTINGS, ENVIRONMENT_PREFIXES } from '../../agent/settings/options.ts';

type Environment = Record<string, string | undefined>;

const RECEIVER = 'collection-agent';
/** Short ones, and what they are short for; `t` has no meaning here. */
const SHORT: Record<string, string> = { v: 'verbose', t: 'tracers' };
/** What is not a setting. */
const PROGRAM_FLAGS = ['version', 'copyright', 'config'];

const SWITCHES: ReadonlySet<string> = new Set(
  AGENT_SETTINGS.flatMap(({ flag, value }) => (value === undefined ? [flag] : [])),
);

export const AGENT_FLAG_NAMES: ReadonlySet<string> = new Set([
  ...AGENT_SETTINGS.map((setting) => setting.flag),
  ...Object.keys(IGNORED_FLAGS),
  ...PROGRAM_FLAGS,
]);

/** As Go's flag package reads it. */
const isTrue = (text: string): boolean => /^(?:1|t|true)$/i.test(text);

/** Two dashes of one, and switches without a value. What follows `--` belongs to the profiled command and stays. */
export function normaliseDashes(argv: readonly string[], flags: ReadonlySet<string>): string[] {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const rest = end < 0 ? [] : argv.slice(end);
  return [...own.flatMap((argument) => normalise(argument, flags)), ...rest];
}

function normalise(argument: string, flags: ReadonlySet<string>): string[] {
  const [, dashes = '', name = '', value] = /^(--?)([a-z][a-z-]*)(?:=(.*))?$/s.exec(argument) ?? [];
  const isShort = name.length === 1;
  // what is short elsewhere too stays so: -p of record
  const long = isShort && (dashes === '--' || value !== undefined) ? (SHORT[name] ?? name) : name;
  if (!flags.has(long) || (isShort && long === name)) return [argument];
  if (SWITCHES.has(long) && value !== undefined) return isTrue(value) ? [`--${long}`] : [];
  return [`--${long}${value === undefined ? '' : `=${value}`}`];
}

/** Without a command, but with a receiver, it is the agent. bin/everyframe has the same rule. */
export function asDropIn(argv: readonly string[], env: Environment): string[] {
  const [first = ''] = argv;
  if (first !== '' && !first.startsWith('-')) return [...argv];
  if (/^(?:-h|--help|-V|--version|--copyright)$/.test(first)) return [...argv];
  const end = argv.indexOf('--');
  const isAgent =
    Boolean(env[`OTEL_PROFILING_AGENT_${RECEIVER.replace('-', '_').toUpperCase()}`]) ||
    argv.slice(0, end < 0 ? argv.length : end).some((each) => new RegExp(`^--${RECEIVER}(?:=|$)`).test(each));
  return isAgent ? ['agent', ...argv] : [...argv];
}

/** One line for all flags and variables that were given in vain; none where there is none. */
export function tellIgnored(flags: readonly string[], env: Environment): string[] {
  const named = flags.map((flag) => ({ flag, name: `${flag.length === 1 ? '-' : '--'}${flag}` }));
  for (const flag of Object.keys(IGNORED_FLAGS)) {
    for (const prefix of ENVIRONMENT_PREFIXES) {
      const name = prefix + flag.toUpperCase().replaceAll('-', '_');
      if (env[name]) named.push({ flag, name });
    }
  }
  if (named.length === 0) return [];
  return [`no effect here: ${named.map(({ flag, name }) => `${name} (${IGNORED_FLAGS[flag]})`).join('; ')}`];
}
