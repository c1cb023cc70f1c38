import type { FrameType, Location, Profile, Sample } from '../../common/profile/profile.ts';
import type { FrameTable } from './frame-table.ts';
import { frameKind, locationFrames, processName } from './frames.ts';
import { PairTable } from './pair-table.ts';
import type { SeriesGroup, SeriesTable } from './series-table.ts';
import { StackTree } from './stack-tree.ts';
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
  readonly frames: Pick<FrameTable, 'intern' | 'internLine'>;
  readonly tree: Pick<StackTree, 'child'>;
  readonly seriesTable: Pick<SeriesTable, 'intern' | 'internGroup'>;
}

const UNKNOWN = -1;
const SEVERAL = -2;

/**
 * Brings the dictionaries of one profile into one segment, each entry once and only when it is needed. Stacks go through a
 * tree of the profile's own first, by location: it fits into the processor's cache, and the segment's tree, which does not,
 * is asked once for what the profile's stacks have in common.
 */
export class SegmentWriter<T extends Dictionaries> {
  readonly segment: T;
  readonly #profile: Profile;
  readonly #budget: FrameBudget;
  /** Profile's process index → TID → the name that it had last and the segment's series. */
  readonly #series = new Map<number, Map<number, { name: string; id: number }>>();
  /** By the profile's stack: the first process that had it and the node; 0 where none had yet. */
  readonly #firstProcesses: Uint32Array;
  readonly #firstNodes: Uint32Array;
  /** Of other processes: process index × stacks + stack index → node. */
  readonly #nodes = new Map<number, number>();
  /** Children of the root are the profile's processes, all below are its locations. */
  readonly #tree = new StackTree();
  /** Node of that tree → node of the segment. */
  readonly #treeNodes = [0];
  /** Profile's location index → frame id, UNKNOWN before it is asked for, SEVERAL where functions are inlined. */
  readonly #frameIds: Int32Array;
  /** Frame ids of such locations, outermost first. */
  readonly #inlined = new Map<number, number[]>();
  /** By profile's function × mappings + mapping, and by frame type: id of the frame without a line. */
  readonly #functions = new PairTable();
  readonly #frameTypes: FrameType[] = [];

  constructor(segment: T, profile: Profile, budget: FrameBudget) {
    this.segment = segment;
    this.#profile = profile;
    this.#budget = budget;
    this.#frameIds = new Int32Array(profile.locations.length).fill(UNKNOWN);
    this.#firstProcesses = new Uint32Array(profile.stacks.length);
    this.#firstNodes = new Uint32Array(profile.stacks.length);
  }

  series({ process, tid, threadName }: Sample): number {
    let threads = this.#series.get(process);
    if (threads === undefined) {
      threads = new Map();
      this.#series.set(process, threads);
    }
    const known = threads.get(tid);
    if (known?.name === threadName) return known.id;
    const { seriesTable } = this.segment;
    const { pid, startUnixNano } = this.#profile.processes[process]!;
    const group = seriesTable.internGroup(groupOf(this.#profile, process, threadName));
    const id = seriesTable.intern(group, pid, tid, startUnixNano);
    threads.set(tid, { name: threadName, id });
    return id;
  }

  /** The node of a sample's stack, or undefined once the profile has used up its budget. */
  node(sample: Sample): number | undefined {
    const { process, stack } = sample;
    if (this.#firstNodes[stack] === 0) {
      const node = this.#addStack(sample);
      this.#firstProcesses[stack] = process;
      this.#firstNodes[stack] = node ?? 0;
      return node;
    }
    if (this.#firstProcesses[stack] === process) return this.#firstNodes[stack];
    const key = process * this.#profile.stacks.length + stack;
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    const node = this.#addStack(sample);
    if (node !== undefined) this.#nodes.set(key, node);
    return node;
  }

  #addStack({ process, stack }: Sample): number | undefined {
    const locations = this.#profile.stacks[stack]!;
    const length = this.#countFrames(locations);
    this.#budget.frames -= Math.min(length, MAX_STACK_FRAMES + 1);
    if (this.#budget.frames < 0) return undefined;
    let at = this.#processNode(process);
    if (length > MAX_STACK_FRAMES) return this.#addCut(this.#treeNodes[at]!, locations);
    for (let i = locations.length - 1; i >= 0; i--) at = this.#child(at, locations[i]!);
    return this.#treeNodes[at];
  }

  #countFrames(locations: Uint32Array): number {
    let count = locations.length;
    for (let i = 0; i < locations.length; i++) {
      const location = locations[i]!;
      if (this.#frameIds[location]! < 0) count += this.#framesOf(location).length - 1;
    }
    return count;
  }

  #processNode(process: number): number {
    const at = this.#tree.child(0, process);
    if (at === this.#treeNodes.length) {
      const { frames, tree } = this.segment;
      const name = processName(this.#profile.processes[process]!);
      this.#treeNodes.push(tree.child(0, frames.intern({ name, file: '', mapping: '', kind: 'process' })));
    }
    return at;
  }

  #child(parent: number, location: number): number {
    const at = this.#tree.child(parent, location);
    if (at === this.#treeNodes.length) {
      const { tree } = this.segment;
      let node = this.#treeNodes[parent]!;
      const frame = this.#frameIds[location]!;
      if (frame >= 0) node = tree.child(node, frame);
      else for (const one of this.#framesOf(location)) node = tree.child(node, one);
      this.#treeNodes.push(node);
    }
    return at;
  }

  #addCut(process: number, locations: Uint32Array): number {
    const { frames, tree } = this.segment;
    let node = tree.child(process, frames.intern(CUT_MARKER));
    const path = [...locations].reverse().flatMap((location) => this.#framesOf(location));
    for (const frame of path.slice(-MAX_STACK_FRAMES)) node = tree.child(node, frame);
    return node;
  }

  #framesOf(index: number): number[] {
    const known = this.#frameIds[index]!;
    if (known >= 0) return [known];
    if (known === SEVERAL) return this.#inlined.get(index)!;
    const ids = this.#internFrames(this.#profile.locations[index]!);
    this.#frameIds[index] = ids.length === 1 ? ids[0]! : SEVERAL;
    if (ids.length !== 1) this.#inlined.set(index, ids);
    return ids;
  }

  #internFrames(location: Location): number[] {
    const { frames } = this.segment;
    const { lines, mapping, frameType } = location;
    const [first] = lines;
    const func = this.#profile.functions[first?.func ?? 0];
    const name = func?.name || func?.systemName;
    if (lines.length !== 1 || first === undefined || !func || !name)
      return locationFrames(this.#profile, location).map((frame) => frames.intern(frame));
    // A function's locations differ in address and line: its texts are looked up once a profile.
    let type = this.#frameTypes.indexOf(frameType);
    if (type < 0) type = this.#frameTypes.push(frameType) - 1;
    const key = first.func * this.#profile.mappings.length + mapping;
    let id = this.#functions.get(key, type);
    if (id === undefined) {
      const { filename = '' } = this.#profile.mappings[mapping] ?? {};
      id = frames.intern({ name, file: func.filename, mapping: filename, kind: frameKind(frameType) });
      this.#functions.set(key, type, id);
    }
    return [func.filename === '' ? id : frames.internLine(id, first.line)];
  }
}

/** A period that cannot be one (an hour and more) says nothing about CPU time. */
function periodOf({ period }: Profile): number {
  return period < 3_600_000_000_000n ? Number(period) : 0;
}

function groupOf(profile: Profile, index: number, thread: string): SeriesGroup {
  const process = profile.processes[index]!;
  return {
    process: processName(process),
    thread,
    path: process.executablePath,
    command: process.commandName,
    containerId: process.containerId,
    cgroup: process.cgroupPath,
    service: process.serviceName,
    host: profile.host['host.name'] ?? '',
    periodNanos: periodOf(profile),
  };
}
