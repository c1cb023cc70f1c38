import type { Location, Profile, Sample } from '../../common/profile/profile.ts';
import { locationFrames, processName } from './frames.ts';
import type { SeriesGroup, SeriesTable } from './series-table.ts';
import type { Frame } from './store.ts';

/** A deeper stack keeps its leaf side, and says so: no agent sends one, so this bounds hostile input. */
const MAX_STACK_FRAMES = 4096;

const CUT_MARKER: Frame = {
  name: `[stack cut: more than ${MAX_STACK_FRAMES} frames]`,
  file: '',
  mapping: '',
  kind: 'abort-marker',
};

/** Work that one profile may still cause: a few bytes can repeat a location with many inlined lines. */
export interface FrameBudget {
  frames: number;
}

/** What takes a profile's dictionaries: a segment in memory, or a partition of a database. */
export interface Dictionaries {
  readonly frames: { intern(frame: Frame): number };
  readonly tree: { child(parent: number, frame: number): number };
  readonly seriesTable: Pick<SeriesTable, 'intern' | 'internGroup'>;
}

/** Brings the dictionaries of one profile into one segment, each entry once and only when it is needed. */
export class SegmentWriter<T extends Dictionaries> {
  readonly segment: T;
  readonly #profile: Profile;
  readonly #budget: FrameBudget;
  /** Profile's process index → thread → the segment's series. */
  readonly #series = new Map<number, Map<string, number>>();
  /** Profile's process index × stacks + stack index → node. */
  readonly #nodes = new Map<number, number>();
  /** Profile's location index → frame ids, outermost first. */
  readonly #locations = new Map<number, number[]>();
  /** Frame type → line → profile's function × mappings + mapping → frame id. */
  readonly #functions = new Map<string, Map<number, Map<number, number>>>();

  constructor(segment: T, profile: Profile, budget: FrameBudget) {
    this.segment = segment;
    this.#profile = profile;
    this.#budget = budget;
  }

  series(sample: Sample): number {
    const threads = this.#series.get(sample.process) ?? new Map<string, number>();
    this.#series.set(sample.process, threads);
    const thread = `${sample.tid}/${sample.threadName}`;
    let id = threads.get(thread);
    if (id === undefined) {
      const { seriesTable } = this.segment;
      const { pid, startUnixNano } = this.#profile.processes[sample.process]!;
      const group = seriesTable.internGroup(groupOf(this.#profile, sample));
      id = seriesTable.intern(group, pid, sample.tid, startUnixNano);
      threads.set(thread, id);
    }
    return id;
  }

  /** The node of a sample's stack, or undefined once the profile has used up its budget. */
  node(sample: Sample): number | undefined {
    const key = sample.process * this.#profile.stacks.length + sample.stack;
    let node = this.#nodes.get(key);
    if (node === undefined) {
      node = this.#addStack(sample);
      if (node !== undefined) this.#nodes.set(key, node);
    }
    return node;
  }

  #addStack(sample: Sample): number | undefined {
    const { frames, tree } = this.segment;
    const name = processName(this.#profile.processes[sample.process]!);
    const path = this.#leafFirst(this.#profile.stacks[sample.stack]!);
    this.#budget.frames -= path.length;
    if (this.#budget.frames < 0) return undefined;
    let node = tree.child(0, frames.intern({ name, file: '', mapping: '', kind: 'process' }));
    for (let i = path.length - 1; i >= 0; i--) node = tree.child(node, path[i]!);
    return node;
  }

  #leafFirst(stack: Uint32Array): number[] {
    const path: number[] = [];
    for (const location of stack) {
      const frames = this.#locationFrames(location);
      for (let i = frames.length - 1; i >= 0; i--) {
        if (path.length === MAX_STACK_FRAMES) {
          path.push(this.segment.frames.intern(CUT_MARKER));
          return path;
        }
        path.push(frames[i]!);
      }
    }
    return path;
  }

  #locationFrames(index: number): number[] {
    let ids = this.#locations.get(index);
    if (ids === undefined) {
      ids = this.#internFrames(this.#profile.locations[index]!);
      this.#locations.set(index, ids);
    }
    return ids;
  }

  /** Locations of a line differ only in address: its frame is interned once a profile. */
  #internFrames(location: Location): number[] {
    const { frames } = this.segment;
    const { lines, mapping, frameType } = location;
    const [line] = lines;
    if (lines.length !== 1 || line!.func === 0)
      return locationFrames(this.#profile, location).map((frame) => frames.intern(frame));
    const byLine = this.#functions.get(frameType) ?? new Map<number, Map<number, number>>();
    this.#functions.set(frameType, byLine);
    const byFunction = byLine.get(line!.line) ?? new Map<number, number>();
    byLine.set(line!.line, byFunction);
    const key = line!.func * this.#profile.mappings.length + mapping;
    let id = byFunction.get(key);
    if (id === undefined) {
      const [frame] = locationFrames(this.#profile, location);
      id = frames.intern(frame!);
      byFunction.set(key, id);
    }
    return [id];
  }
}

/** A period that cannot be one (an hour and more) says nothing about CPU time. */
function periodOf({ period }: Profile): number {
  return period < 3_600_000_000_000n ? Number(period) : 0;
}

function groupOf(profile: Profile, sample: Sample): SeriesGroup {
  const process = profile.processes[sample.process]!;
  return {
    process: processName(process),
    thread: sample.threadName,
    path: process.executablePath,
    command: process.commandName,
    containerId: process.containerId,
    cgroup: process.cgroupPath,
    service: process.serviceName,
    host: profile.host['host.name'] ?? '',
    periodNanos: periodOf(profile),
  };
}
