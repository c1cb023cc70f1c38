/** What is seen, as a profile for the writers of every format. */

import type { Transform } from '../../common/profile/filters/transform-list.ts';
import { LinkTable } from '../../common/profile/model/link.ts';
import {
  emptyMapping,
  emptyProcess,
  emptyProfile,
  type Link,
  type Profile,
} from '../../common/profile/model/profile.ts';
import { cpuType, isCpuType } from '../../common/profile/model/profile-type.ts';
import { compileMasks } from '../store/matcher.ts';
import type { Series } from '../store/series.ts';
import type { SeriesTable } from '../store/series-table.ts';
import type { Frame, SampleFilter } from '../store/store.ts';
import { CPU_TYPE } from '../store/stored-type.ts';
import { partsOf } from './levels.ts';
import { type PartStore, weightOf } from './rows.ts';
import { type Transformed, transformStacks } from './transforms.ts';

/**
 * Counts by stack and thread, without single times. Functions have no addresses: the store tells them apart by
 * name, source file and binary, and keeps their lines.
 */
export async function readProfile(
  store: PartStore,
  filter: SampleFilter,
  transforms: readonly Transform[] = [],
): Promise<Profile> {
  const parts = await partsOf(store, filter);
  const builder = new ProfileBuilder(filter, parts[0]?.type);
  for (const part of parts) {
    const masks = await compileMasks(filter.where, part);
    const { fromMs, toMs } = filter;
    const rows = await part.rows({
      fromMs,
      toMs,
      ...masks,
      by: ['node', 'series', 'link'],
      stepMs: 1,
      resolutionMs: 1,
    });
    const byLink = new Map<number, Map<number, number>>();
    const series = await part.series();
    const width = series.length;
    for (let row = 0; row < rows.length; row++) {
      const link = rows.links?.[row] ?? 0;
      const counts = byLink.get(link) ?? new Map<number, number>();
      byLink.set(link, counts);
      const key = rows.nodes![row]! * width + rows.series![row]!;
      counts.set(key, (counts.get(key) ?? 0) + weightOf(rows, row));
    }
    const [stacks, links] = [transformStacks(await part.stacks(), transforms), await part.links()];
    for (const [link, counts] of byLink) builder.add(series, stacks, links.at(link), counts);
  }
  return builder.profile;
}

class ProfileBuilder {
  readonly #links = new LinkTable();
  readonly profile: Profile = { ...emptyProfile(), links: this.#links.links };
  readonly #mappings = new Map([['', 0]]);
  readonly #functions = new Map<string, number>();
  readonly #locations = new Map<string, number>();
  readonly #processes = new Map<string, number>();
  readonly #stacks = new Map<string, number>();
  /** Each part of the store has its own count of what went on through its end. */
  readonly #samples = new Map<string, number>();

  constructor({ fromMs, toMs }: SampleFilter, type = CPU_TYPE) {
    this.profile.type = type;
    this.profile.timeUnixNano = BigInt(Math.floor(fromMs)) * 1_000_000n;
    this.profile.durationNano = BigInt(Math.ceil(toMs - fromMs)) * 1_000_000n;
  }

  /** `counts`: events by node of the stacks as they were, times the number of series, plus the series. */
  add(
    allSeries: SeriesTable,
    { stacks, nodes }: Transformed,
    link: Link,
    counts: ReadonlyMap<number, number>,
  ): void {
    const linkIndex = this.#links.indexOf(link);
    const { frames, parents, nodeFrames } = stacks;
    const locations = new Map<number, number>();
    const width = allSeries.length;
    for (const [key, count] of counts) {
      const start = nodes[Math.floor(key / width)]!;
      if (start < 0) continue;
      const series = allSeries.at(key % width);
      const stack: number[] = [];
      // The child of the root is the process, which is not a frame.
      for (let node = start; parents[node] !== 0; node = parents[node]!) {
        const frame = nodeFrames[node]!;
        const location = locations.get(frame) ?? this.#location(frames[frame]!);
        locations.set(frame, location);
        stack.push(location);
      }
      this.#noteShared(series);
      this.#addSample(this.#stack(stack), series, linkIndex, count);
    }
  }

  #addSample(stack: number, series: Series, link: number, count: number): void {
    const { samples } = this.profile;
    const process = this.#process(series);
    const { tid, thread: threadName } = series;
    const sample = intern(this.#samples, [stack, process, tid, link, threadName].join('\0'), () =>
      samples.push({
        ...{ stack, process, tid, threadName, cpu: -1, value: 0, timestamps: [] },
        ...(link > 0 && { link }),
      }),
    );
    samples[sample]!.value += count;
  }

  #noteShared({ periodNanos, host }: Series): void {
    const { profile } = this;
    if (profile.samples.length === 0) {
      if (isCpuType(profile.type)) profile.type = cpuType(BigInt(Math.round(periodNanos)));
      if (host !== '') profile.host['host.name'] = host;
    } else if (host !== profile.host['host.name']) {
      delete profile.host['host.name'];
    }
  }

  #stack(locations: number[]): number {
    const { stacks } = this.profile;
    return locations.length === 0
      ? 0
      : intern(this.#stacks, locations.join(), () => stacks.push(Uint32Array.from(locations)));
  }

  #location({ name, file, mapping, kind, line = 0 }: Frame): number {
    const { profile } = this;
    const func = intern(this.#functions, `${name}\0${file}`, () =>
      profile.functions.push({ name, systemName: '', filename: file, startLine: 0 }),
    );
    return intern(this.#locations, [kind, func, mapping, line].join('\0'), () => {
      return profile.locations.push({
        mapping: intern(this.#mappings, mapping, () =>
          profile.mappings.push({ ...emptyMapping(), filename: mapping }),
        ),
        address: 0n,
        frameType:
          kind === 'unknown' || kind === 'process' || kind === 'root' || kind === 'other' ? '' : kind,
        lines: [{ func, line, column: 0 }],
      });
    });
  }

  #process(series: Series): number {
    const { processes } = this.profile;
    const { process, pid, path, command, containerId, cgroup, service, startUnixNano, host, attributes } =
      series;
    const key = [pid, startUnixNano, process, path, containerId, host, attributes].join('\0');
    return intern(this.#processes, key, () =>
      processes.push({
        ...emptyProcess(),
        pid,
        executableName: process,
        executablePath: path,
        commandName: command,
        containerId,
        cgroupPath: cgroup,
        serviceName: service,
        startUnixNano,
        ...(attributes !== '' && { attributes }),
      }),
    );
  }
}

/** `add` gives the new length of its table. */
function intern(ids: Map<string, number>, key: string, add: () => number): number {
  let id = ids.get(key);
  if (id === undefined) {
    id = add() - 1;
    ids.set(key, id);
  }
  return id;
}
