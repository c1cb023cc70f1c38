/** What `record` says when it has written its file: what is in it, what is not, and what to do next. */
import { countEvents, type Profile } from '../../common/profile/model/profile.ts';
import { valueKind } from '../../common/profile/model/profile-type.ts';
import { valueFormatter } from '../../common/profile/model/value-format.ts';
import { totalOf } from '../../common/profile/text/inclusive-shares.ts';
import { groupDigits, share } from '../../common/profile/text/report-text.ts';

export interface Recorded {
  profile: Profile;
  /** What else was sampled, of other types. */
  others?: readonly Profile[];
  /** The file's name; `-` for standard output. */
  output: string;
  seconds: number;
  /** What they grew by meanwhile. */
  counters: Record<string, number>;
  /** Of --event: what happened, whatever was sampled. */
  events?: readonly { spec: { text: string }; events: number; samples: number }[];
  /** Those alone were asked for; undefined: CPU time, or events. */
  waits?: 'waits' | 'locks' | undefined;
  /** Whether processes or a command were chosen. */
  isChosen: boolean;
  /** Whether the page opens by itself. */
  isViewed: boolean;
}

export const lostSamples = (counters: Record<string, number>): number =>
  (counters['bpf.samples_lost_ring'] ?? 0) + (counters['bpf.traces_lost_ring'] ?? 0);

/** A share of incomplete stacks that deserves a word. */
const MIN_CUT_SHARE = 0.005;

export function recordSummary(recorded: Recorded): string[] {
  const { profile, others = [], output, seconds, counters, events = [], isViewed } = recorded;
  const total = totalOf(profile);
  const where = output === '-' ? 'standard output' : output;
  // in the end nothing may be in use of what was
  const isLevel = valueKind(profile.type) === 'level';
  if (total === 0 && !(isLevel && others.some((other) => totalOf(other) > 0)))
    return [nothingSampled(where, recorded)];
  const processes = countProcesses(profile);
  const lines = [
    `${[profile, ...others].map(amountOf).join(', ')} of ${count(processes, 'process', 'processes')} in ${seconds.toFixed(1)} s, written to ${where}`,
  ];
  lines.push(...events.map(eventLine));
  const lost = lostSamples(counters);
  if (lost > 0) {
    const kept = [profile, ...others].reduce((sum, one) => sum + countEvents(one), 0);
    lines.push(
      `${groupDigits(lost)} samples (${share(lost, lost + kept)}) were lost because this machine was too busy: record with a lower --frequency`,
    );
  }
  const cut = countCut(profile);
  if (cut > 0 && cut >= MIN_CUT_SHARE * total)
    lines.push(
      `${share(cut, total)} of the stacks are incomplete: a frame in them that begins with "[" says why`,
    );
  if (output !== '-' && /\.(html|svg)$/i.test(output)) lines.push(`open ${output} in a browser`);
  else if (output !== '-' && !/\.txt$/i.test(output)) {
    const view = isViewed ? '' : `everyframe view ${quote(output)}, or `;
    lines.push(`next: ${view}everyframe report ${quote(output)} --by function`);
  }
  return lines;
}

/** One is there once for each program that it executed, and for each set of labels that its threads have; only some files say PIDs. */
const countProcesses = ({ samples, processes }: Profile): number =>
  new Set(
    samples.map(({ process }) => {
      const { pid, startUnixNano, executableName } = processes[process]!;
      return pid > 0 ? `${pid} ${startUnixNano}` : executableName;
    }),
  ).size;

/** The exact number, and of how many of them the stack was taken. */
const eventLine = ({ spec, events, samples }: NonNullable<Recorded['events']>[number]): string =>
  `${spec.text}: ${count(events, 'event', 'events')}, the stacks of ${samples === events ? 'all of them' : groupDigits(samples)}`;

const amountOf = (profile: Profile): string => {
  return valueFormatter(profile.type.sampleType).of(totalOf(profile));
};

const nothingSampled = (where: string, { isChosen, events = [], waits }: Recorded): string => {
  if (waits) {
    const who = isChosen ? 'no chosen process' : 'no process';
    return `no samples in ${where}: ${who} waited${waits === 'locks' ? ' for a lock' : ''}. Record for longer`;
  }
  if (events.length > 0)
    return `no samples in ${where}: ${events.map(({ spec }) => spec.text).join(' and ')} did not happen. Record for longer`;
  return isChosen
    ? `no samples in ${where}: the chosen processes used no CPU. Record for longer, or with a higher --frequency`
    : `no samples in ${where}: no CPU was busy. Record for longer`;
};

const count = (number: number, one: string, many: string): string =>
  `${groupDigits(number)} ${number === 1 ? one : many}`;

const quote = (file: string): string =>
  /^[\w./@%+=:,-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;

function countCut({ samples, stacks, locations }: Profile): number {
  const isCut = stacks.map((stack) => stack.some((at) => locations[at]!.frameType === 'abort-marker'));
  return samples.reduce((sum, { stack, value }) => sum + (isCut[stack] ? value : 0), 0);
}
