/** Spans of samples. */
import { readAttributes } from '../../common/profile/model/attributes.ts';
import type { Recording } from './recording.ts';

/** Of the samples with the function: how many have each span and route. */
export function spansOf(recording: Recording, pid: number, name: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { samples, stacks, locations, functions, processes, links } of recording.profiles) {
    for (const { stack, process, link = 0, value } of samples) {
      const { pid: of, attributes } = processes[process]!;
      const isIn = stacks[stack]!.some((location) =>
        locations[location]!.lines.some(({ func }) => functions[func]!.name === name),
      );
      if (of !== pid || !isIn) continue;
      const { traceId, spanId } = links[link]!;
      const route = readAttributes(attributes ?? '').get('process.context.label.http.route') ?? '';
      const key = `${traceId.slice(0, 2)} ${spanId.slice(0, 2)} ${route}`.trim();
      counts.set(key, (counts.get(key) ?? 0) + value);
    }
  }
  return counts;
}
