/** What every view is made from: one pass over the parts of the store that a filter touches. */
import type { Transform } from '../../common/profile/filters/transform-list.ts';
import { compileMasks, EVERYTHING, MAX_CPUS, type RowMasks } from '../store/matcher.ts';
import type { Rows, SampleFilter, SamplePart, StackCounts, Window } from '../store/store.ts';
import type { LeafSums } from './flame/leaf-sums.ts';
import { FoldingParts } from './fold-parts.ts';
import { isLevel, partsOf } from './levels.ts';
import { type PartStore, rowQuery, stepOf, weightOf } from './rows.ts';
import { isSpread } from './spread.ts';
import { readSums, type SumsRead, takeFunctions } from './summed-parts.ts';
import { addSteps } from './timeline.ts';
import { transformParts } from './transforms.ts';

/** `shown`: without lines, and what is too rare to be seen in a flame graph is "(other)" of the function above. */
export type Precision = 'whole' | 'shown';

interface WindowReading {
  precision?: Precision;
  /** Of all samples those that are looked at: what is too rare to be seen is measured by them. */
  share?: number;
  /** Applied to each part as it is read. */
  transforms?: readonly Transform[];
  /** Gets to know each sample, before anything is folded. */
  leaves?: LeafSums;
}

/**
 * What happened in a time range: stacks with counts, and a timeline of `steps` equal steps. `isWhole`: nothing was folded while it
 * was read.
 */
export async function readWindow(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  { precision = 'whole', share = 1, transforms = [], leaves }: WindowReading = {},
): Promise<Window & { isWhole: boolean }> {
  let folding: FoldingParts | undefined;
  const visit = (part: StackCounts, { samples, partCount }: WindowSize): void => {
    const [transformed] = transformParts([part], transforms);
    leaves?.add(transformed!);
    folding ??= new FoldingParts(samples * share, partCount);
    folding.add(transformed!);
  };
  let isSummed = false;
  const visitSums = async ({ stacks, parts }: SumsRead, size: WindowSize): Promise<void> => {
    isSummed = true;
    const [transformed] = transformParts([stacks], transforms);
    folding ??= new FoldingParts(size.samples * share, size.partCount);
    folding.add(transformed!);
    if (leaves === undefined) return;
    const isExact =
      transforms.length === 0 && [...parts].every((part) => part.summed?.(filter)?.functions !== undefined);
    if (!isExact) leaves.add(transformed!);
    else for (const part of parts) await takeFunctions(part, filter, leaves);
  };
  // A transform may bring together what is rare, and a box that is looked at has figures of its own.
  const isExact = leaves !== undefined && (transforms.length > 0 || share < 1);
  const window = await visitWindow(store, filter, steps, visit, { precision, share, isExact, visitSums });
  return { ...window, parts: folding?.parts ?? [], isWhole: !isSummed && folding?.isFolding !== true };
}

/** What is known before the stacks are read. */
interface WindowSize {
  /** Events that pass the filter. */
  samples: number;
  /** Of the store. */
  partCount: number;
}

interface Reading {
  precision?: Precision;
  share?: number;
  /** Every stack is worth reading, where there are not too many. */
  isExact?: boolean;
  /** Takes what stores summed before. */
  visitSums?: (sums: SumsRead, size: WindowSize) => Promise<void>;
  /** Takes what it can of a part; true where its stacks are not needed then. */
  takeSums?: (part: SamplePart) => Promise<boolean>;
}

/** As {@link readWindow}, for what needs only one part's stacks at a time. */
export async function visitWindow(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  visit: (part: StackCounts, size: WindowSize) => void,
  { precision = 'whole', share = 1, isExact = false, takeSums, visitSums }: Reading = {},
): Promise<Omit<Window, 'parts'>> {
  const window = { samples: 0, allSamples: 0, cpuNanos: 0, cpus: 0, timeline: new Float64Array(steps) };
  const cpusByHost = new Map<string, Set<number>>();
  const found: { part: SamplePart; masks: RowMasks }[] = [];
  const parts = await partsOf(store, filter);
  for (const part of parts) {
    const masks = await compileMasks(filter.where, part);
    noteCpus(part, await part.rows(rowQuery(filter, EVERYTHING, ['group', 'cpu'])), window, cpusByHost);
    await addTimeline(part, filter, masks, window);
    found.push({ part, masks });
  }
  window.cpus = sumSizes(cpusByHost);
  const size = { samples: window.samples, partCount: found.length };
  if (isLevel(parts) || isSpread(parts, (filter.toMs - filter.fromMs) / steps)) {
    window.timeline.fill(0);
    await addSteps(store, filter, { steps, by: undefined }, () => window.timeline);
  }
  const summed = precision === 'shown' ? parts : [];
  const sums = await readSums(summed, filter, { samples: window.samples * share, isExact });
  if (sums !== undefined) await visitSums?.(sums, size);
  for (const { part, masks } of found) {
    if (sums?.parts.has(part) || (await takeSums?.(part))) continue;
    const counts = await countStacks(part, filter, masks);
    if (counts !== undefined) visit(counts, size);
  }
  return window;
}

/** CPUs of all hosts that any sample of the time came from, also such as the filter leaves out. */
export async function countCpus(store: PartStore, filter: SampleFilter): Promise<number> {
  const cpusByHost = new Map<string, Set<number>>();
  for (const part of await partsOf(store, filter))
    noteCpus(
      part,
      await part.rows(rowQuery(filter, EVERYTHING, ['group', 'cpu'])),
      { allSamples: 0 },
      cpusByHost,
    );
  return sumSizes(cpusByHost);
}

const sumSizes = (sets: ReadonlyMap<string, ReadonlySet<number>>): number =>
  [...sets.values()].reduce((sum, { size }) => sum + size, 0);

function noteCpus(
  part: SamplePart,
  rows: Rows,
  window: { allSamples: number },
  cpusByHost: Map<string, Set<number>>,
): void {
  const byHost = part.groups.map(({ host }) => {
    const seen = cpusByHost.get(host) ?? new Set();
    cpusByHost.set(host, seen);
    return seen;
  });
  for (let row = 0; row < rows.length; row++) {
    window.allSamples += weightOf(rows, row);
    const cpu = rows.cpus![row]!;
    if (cpu >= 0 && cpu < MAX_CPUS) byHost[rows.groups![row]!]!.add(cpu);
  }
}

async function addTimeline(
  part: SamplePart,
  filter: SampleFilter,
  masks: RowMasks,
  window: Omit<Window, 'parts'>,
) {
  const { timeline } = window;
  const stepMs = (filter.toMs - filter.fromMs) / timeline.length;
  const rows = await part.rows(rowQuery(filter, masks, ['group', 'time'], stepMs));
  const shift = part.startMs - filter.fromMs;
  for (let row = 0; row < rows.length; row++) {
    const weight = weightOf(rows, row);
    window.samples += weight;
    window.cpuNanos += weight * part.groups[rows.groups![row]!]!.periodNanos;
    timeline[stepOf(rows.times![row]! + shift, stepMs, timeline.length)]! += weight;
  }
}

/** Undefined where no event passes the filter. */
async function countStacks(
  part: SamplePart,
  filter: SampleFilter,
  masks: RowMasks,
): Promise<StackCounts | undefined> {
  const rows = await part.rows(rowQuery(filter, masks, ['node']));
  if (rows.length === 0) return undefined;
  const stacks = await part.stacks();
  const selfCounts = new Float64Array(stacks.parents.length);
  for (let row = 0; row < rows.length; row++) selfCounts[rows.nodes![row]!]! += weightOf(rows, row);
  return { ...stacks, selfCounts };
}
