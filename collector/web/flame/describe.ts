import { type FlameModel, kindOf, nameOf } from '../../../common/flame/flame-model.ts';
import { formatDuration, formatPoints, formatShare, plural } from '../../../common/flame/format.ts';
import { kindLabel } from '../../../common/flame/kinds.ts';
import { formatterOf, isCpu, levelNote } from '../../../common/flame/shown-type.ts';
import { ALL_RUNTIMES, libraryOf, readRuntimes } from '../../../common/profile/filters/my-code.ts';
import { readTransforms } from '../state/terms.ts';
import { sharesOf } from './diff-model.ts';

/** Seconds of CPU time that some samples stand for. */
export const cpuSeconds = (model: FlameModel, samples: number): number =>
  model.samples === 0 ? 0 : (samples * model.cpuNanos) / model.samples / 1e9;

/** What a screen reader says of a box. */
export function describeBox(model: FlameModel, node: number, root: number): string {
  if (model.comparison !== undefined) return describeChange(model, model.comparison, node);
  const { amount, cell } = formatterOf(model.type);
  const total = model.total[node]!;
  const self = model.self[node]!;
  const parts = [
    nameOf(model, node),
    kindLabel(kindOf(model, node)),
    `${formatShare(total / model.total[root]!)} of the view`,
    `${amount(total)}, ${cell(self)} of its own`,
    plural(model.childCount[node]!, 'callee'),
    `level ${model.depth[node]! + 1}`,
  ];
  return parts.join(', ');
}

function describeChange(
  model: FlameModel,
  comparison: NonNullable<FlameModel['comparison']>,
  node: number,
): string {
  const { now, base } = sharesOf(comparison, node);
  const shares = `${formatShare(now)} now, ${formatShare(base)} before, ${formatPoints(now - base)}`;
  return `${nameOf(model, node)}, ${kindLabel(kindOf(model, node))}, ${shares}, level ${model.depth[node]! + 1}`;
}

/** One line on what the graph stands for, or its zoomed part. */
export function describeView(model: FlameModel, root: number): string {
  const samples = model.total[root]!;
  const share = root === 0 ? '' : ` (${formatShare(samples / model.samples)})`;
  const { of } = formatterOf(model.type);
  const what = isCpu(model.type)
    ? `, about ${formatDuration(cpuSeconds(model, samples))} of CPU time`
    : levelNote(model.type);
  return `${of(samples)}${share}${what}`;
}

/** What the transform `only` left out; '' where it is not in force. */
export function describeMyCode(model: FlameModel, transform: string): string {
  const only = readTransforms(transform).find(({ name }) => name === 'only');
  if (only === undefined) return '';
  const runtimes = readRuntimes(only.values) ?? ALL_RUNTIMES;
  const what =
    runtimes.size === ALL_RUNTIMES.size
      ? 'frames of the kernel, of runtimes and of libraries'
      : [...runtimes].map(libraryOf).join('; ');
  let bare = 0;
  for (let node = 1; node < model.count; node++)
    if (kindOf(model, node) === 'process') bare += model.self[node]!;
  const share = bare / (model.total[0] || 1);
  const empty =
    bare === 0
      ? ''
      : ` ${formatShare(share)} of the ${formatterOf(model.type).column} have no frame left: where a process has nothing below it, none of its code is yours.`;
  return `My code only hides ${what}.${empty}`;
}
