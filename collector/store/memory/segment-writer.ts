import { attributesText, readAttributes } from '../../../common/profile/model/attributes.ts';
import type { ColumnProfile, FrameColumns } from '../../../common/profile/model/frame-columns.ts';
import type { FrameType, Sample } from '../../../common/profile/model/profile.ts';
import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import type { PartLinks } from '../part-links.ts';
import type { SeriesGroup } from '../series.ts';
import type { SeriesTable } from '../series-table.ts';
import type { Frame } from '../store.ts';
import { periodNanos } from '../stored-type.ts';
import type { FrameTable } from '../trees/frame-table.ts';
import { binaryOf, frameKind, lineOfPlace, locationFrames, processName } from '../trees/frames.ts';
import { StackTree } from '../trees/stack-tree.ts';

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

/** Takes a profile's dictionaries: a segment in memory, or a partition of a database. */
export interface Dictionaries {
  readonly frames: Pick<
    FrameTable,
    'intern' | 'internLine' | 'internFunction' | 'internAddress' | 'origin' | 'stringId'
  >;
  readonly tree: Pick<StackTree, 'child'>;
  readonly seriesTable: Pick<SeriesTable, 'intern' | 'internGroup'>;
  readonly linkTable: Pick<PartLinks, 'indexOf'>;
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
  readonly #profile: ColumnProfile;
  readonly #periodNanos: number;
  readonly #columns: FrameColumns;
  readonly #budget: FrameBudget;
  /** Profile's process index → TID → the name that it had last and the segment's series. */
  readonly #series = new Map<number, Map<number, { name: string; id: number }>>();
  /** Attributes of processes → with those of the host. */
  readonly #attributes = new Map<string, string>();
  /** By the profile's stack: the first process that had it and the node; 0 where none had yet. */
  readonly #firstProcesses: Uint32Array;
  readonly #firstNodes: Uint32Array;
  /** Nodes of other processes: process index × stacks + stack index → node. */
  readonly #nodes = new Map<number, number>();
  /** Children of the root are the profile's processes, all below are its locations. */
  readonly #tree = new StackTree();
  /** Node of that tree → node of the segment. */
  readonly #treeNodes = [0];
  /** Profile's location index → frame id, UNKNOWN before it is asked for, SEVERAL where functions are inlined. */
  readonly #frameIds: Int32Array;
  /** Frame ids of such locations, outermost first. */
  readonly #inlined = new Map<number, number[]>();
  /** By the profile's function: the origin that it was last asked for with and 1, and the frame without a line. */
  readonly #functionOrigins: Int32Array;
  readonly #functionFrames: Int32Array;
  /** By frame type, then by the profile's mapping: id of what frames share, where addresses have no names and where they have. */
  readonly #origins = new Map<FrameType, number[]>();
  readonly #binaryOrigins = new Map<FrameType, number[]>();

  /** Profile's link index → the segment's. */
  readonly #links = new Map<number, number>();

  /** @param type of the samples, with its period */
  constructor(segment: T, profile: ColumnProfile, type: ProfileType, budget: FrameBudget) {
    this.segment = segment;
    this.#periodNanos = periodNanos(type);
    this.#profile = profile;
    this.#budget = budget;
    this.#columns = profile.frames;
    this.#frameIds = new Int32Array(profile.frames.locationCount).fill(UNKNOWN);
    this.#functionOrigins = new Int32Array(profile.frames.functionCount);
    this.#functionFrames = new Int32Array(profile.frames.functionCount);
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
    const group = seriesTable.internGroup(
      groupOf(
        this.#profile,
        { index: process, attributes: this.#attributesOf(process), periodNanos: this.#periodNanos },
        threadName,
      ),
    );
    const id = seriesTable.intern(group, pid, tid, startUnixNano);
    threads.set(tid, { name: threadName, id });
    return id;
  }

  link({ link = 0 }: Sample): number {
    if (link === 0) return 0;
    let known = this.#links.get(link);
    if (known === undefined) {
      known = this.segment.linkTable.indexOf(this.#profile.links[link]!);
      this.#links.set(link, known);
    }
    return known;
  }

  /** Attributes of a process, with those of its host besides its name. */
  #attributesOf(process: number): string {
    const own = this.#profile.processes[process]!.attributes ?? '';
    let known = this.#attributes.get(own);
    if (known === undefined) {
      const ofHost = Object.entries(this.#profile.host).filter(([key]) => key !== 'host.name');
      known = attributesText([...ofHost, ...readAttributes(own)]);
      this.#attributes.set(own, known);
    }
    return known;
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
      if (this.#frameIds[location]! === UNKNOWN) this.#internFrames(location);
      if (this.#frameIds[location]! === SEVERAL) count += this.#inlined.get(location)!.length - 1;
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
      else for (const one of this.#inlined.get(location)!) node = tree.child(node, one);
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

  /** Frames of a location whose frames were counted. */
  #framesOf(index: number): number[] {
    const known = this.#frameIds[index]!;
    return known === SEVERAL ? this.#inlined.get(index)! : [known];
  }

  #internFrames(index: number): void {
    const { lineStarts, lineFunctions, lineNumbers, names, systemNames } = this.#columns;
    const start = lineStarts[index]!;
    const lines = lineStarts[index + 1]! - start;
    if (lines === 0) {
      this.#frameIds[index] = this.#internAddress(index);
      return;
    }
    const func = lineFunctions[start]!;
    const name = names[func]! || systemNames[func]!;
    if (lines === 1 && name !== 0) {
      this.#frameIds[index] = this.#internFunction(index, func, name, lineNumbers[start]!);
      return;
    }
    const { frames } = this.segment;
    const location = this.#columns.location(index);
    const mapping = this.#profile.mappings[location.mapping];
    const found = locationFrames(mapping, location, (called) => this.#columns.func(called));
    const ids = found.map((frame) => frames.intern(frame));
    this.#frameIds[index] = ids.length === 1 ? ids[0]! : SEVERAL;
    if (ids.length !== 1) this.#inlined.set(index, ids);
  }

  /** A function's locations differ in address and line: its strings are looked up once a profile. */
  #internFunction(location: number, func: number, name: number, line: number): number {
    const { mappings, types, files, strings } = this.#columns;
    const { frames } = this.segment;
    const origin = this.#originOf(this.#origins, types[location]!, mappings[location]!, '');
    if (this.#functionOrigins[func] !== origin + 1) {
      this.#functionOrigins[func] = origin + 1;
      const file = frames.stringId(strings, files[func]!);
      this.#functionFrames[func] = frames.internFunction(origin, file, frames.stringId(strings, name));
    }
    const frame = this.#functionFrames[func]!;
    return files[func] === 0 ? frame : frames.internLine(frame, line);
  }

  /** Interns the frame of a location without lines. */
  #internAddress(index: number): number {
    const { mappings, types, addressesLow, addressesHigh } = this.#columns;
    const { frames } = this.segment;
    const [low, frameType] = [addressesLow[index]!, types[index]!];
    const mapping = this.#profile.mappings[mappings[index]!];
    const frameOf = (): Frame => locationFrames(mapping, this.#columns.location(index), () => undefined)[0]!;
    if (low === 0 || addressesHigh[index] !== 0) return frames.intern(frameOf());
    const binary = binaryOf(mapping, { address: BigInt(low), frameType });
    const origin = this.#originOf(this.#binaryOrigins, frameType, mappings[index]!, binary);
    const functionStart = this.#columns.functionStarts.get(index);
    const line = lineOfPlace(low, functionStart);
    const place = line > 0 ? functionStart! : low;
    const frame = frames.internAddress(origin, place | 0, () => frameOf().name);
    return frames.internLine(frame, line);
  }

  /** @param binary is the same for a type and a mapping in `known` */
  #originOf(known: Map<FrameType, number[]>, type: FrameType, mapping: number, binary: string): number {
    let ofType = known.get(type);
    if (ofType === undefined) {
      ofType = [];
      known.set(type, ofType);
    }
    let origin = ofType[mapping];
    if (origin === undefined) {
      const { filename = '' } = this.#profile.mappings[mapping] ?? {};
      origin = this.segment.frames.origin(filename, frameKind(type), binary);
      ofType[mapping] = origin;
    }
    return origin;
  }
}

function groupOf(
  profile: ColumnProfile,
  { index, attributes, periodNanos }: { index: number; attributes: string; periodNanos: number },
  thread: string,
): SeriesGroup {
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
    attributes,
    periodNanos,
  };
}
