/**
 * The series of a part in columns. Where processes are short-lived, most samples bring a series of their own; what these
 * have in common with others of their program is kept once, as a group.
 */

import { HASH_KEYS } from '../../common/base/hash-keys.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import type { Series, SeriesGroup } from './series.ts';

/** Rough cost of a group in V8's heap, its map entry included, without its texts. */
const GROUP_BYTES = 400;
const INITIAL_ROWS = 256;
/** Different sets of attributes in a part; of later ones it says so instead. */
export const MAX_ATTRIBUTE_SETS = 4096;
const TOO_MANY_ATTRIBUTES = attributesText([
  ['everyframe.attributes', `left out: more than ${MAX_ATTRIBUTE_SETS} different sets`],
]);

/** Columns of one length. */
export interface SeriesColumns {
  groups: Uint32Array;
  pids: Float64Array;
  tids: Float64Array;
  /** Start of the process. */
  startsUnixNano: BigUint64Array;
}

/** Series and groups without duplicates; ids count from 0, and stay. */
export class SeriesTable implements Iterable<Series> {
  readonly groups: SeriesGroup[] = [];
  readonly #groupIds = new Map<string, number>();
  readonly #attributeSets = new Set<string>();
  #groupBytes = 0;
  #columns: SeriesColumns;
  #length = 0;
  /** Open addressing; a slot holds an id and 1, 0 when free. Made when the first series is looked for. */
  #slots: Uint32Array | undefined;

  constructor(groups: readonly SeriesGroup[] = [], columns = emptyColumns(INITIAL_ROWS), length = 0) {
    for (const group of groups) {
      this.#attributeSets.add(group.attributes);
      this.#addGroup(groupKey(group), group);
    }
    this.#columns = columns;
    this.#length = length;
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    return this.#groupBytes + this.#columns.groups.length * 28 + (this.#slots?.byteLength ?? 0);
  }

  groupOf(id: number): number {
    return this.#columns.groups[id]!;
  }

  pidOf(id: number): number {
    return this.#columns.pids[id]!;
  }

  startOf(id: number): bigint {
    return this.#columns.startsUnixNano[id]!;
  }

  /** A view. */
  ids(of: 'pid' | 'tid'): Float64Array {
    return (of === 'pid' ? this.#columns.pids : this.#columns.tids).subarray(0, this.#length);
  }

  at(id: number): Series {
    const { groups, pids, tids, startsUnixNano } = this.#columns;
    const group = this.groups[groups[id]!]!;
    return { ...group, pid: pids[id]!, tid: tids[id]!, startUnixNano: startsUnixNano[id]! };
  }

  /** From the first to before the second, as views. */
  slice(from: number, to: number): SeriesColumns {
    const { groups, pids, tids, startsUnixNano } = this.#columns;
    return {
      groups: groups.subarray(from, to),
      pids: pids.subarray(from, to),
      tids: tids.subarray(from, to),
      startsUnixNano: startsUnixNano.subarray(from, to),
    };
  }

  *[Symbol.iterator](): Generator<Series> {
    for (let id = 0; id < this.#length; id++) yield this.at(id);
  }

  internGroup(group: SeriesGroup): number {
    const bounded = this.#boundAttributes(group);
    const key = groupKey(bounded);
    return this.#groupIds.get(key) ?? this.#addGroup(key, bounded);
  }

  /** A sender may give each sample attributes of its own, such as the ID of a request: those can't be grouped by. */
  #boundAttributes(group: SeriesGroup): SeriesGroup {
    const sets = this.#attributeSets;
    if (sets.has(group.attributes)) return group;
    if (sets.size >= MAX_ATTRIBUTE_SETS) return { ...group, attributes: TOO_MANY_ATTRIBUTES };
    sets.add(group.attributes);
    return group;
  }

  intern(group: number, pid: number, tid: number, startUnixNano: bigint): number {
    this.#slots ??= this.#makeSlots(this.#columns.groups.length);
    const mask = this.#slots.length - 1;
    const { groups, pids, tids, startsUnixNano } = this.#columns;
    let slot = hash(group, pid, tid, startUnixNano) & mask;
    for (let id = this.#slots[slot]! - 1; id >= 0; id = this.#slots[slot]! - 1) {
      const isSame = groups[id] === group && pids[id] === pid && tids[id] === tid;
      if (isSame && startsUnixNano[id] === startUnixNano) return id;
      slot = (slot + 1) & mask;
    }
    this.#slots[slot] = this.#length + 1;
    return this.append(group, pid, tid, startUnixNano);
  }

  /** One that is not there yet. */
  append(group: number, pid: number, tid: number, startUnixNano: bigint): number {
    const id = this.#length++;
    if (id === this.#columns.groups.length) {
      this.#columns = enlarged(this.#columns);
      this.#slots = undefined;
    }
    const { groups, pids, tids, startsUnixNano } = this.#columns;
    groups[id] = group;
    pids[id] = pid;
    tids[id] = tid;
    startsUnixNano[id] = startUnixNano;
    return id;
  }

  #addGroup(key: string, group: SeriesGroup): number {
    const id = this.groups.push(group) - 1;
    this.#groupIds.set(key, id);
    this.#groupBytes += GROUP_BYTES + 4 * key.length;
    return id;
  }

  #makeSlots(capacity: number): Uint32Array {
    const slots = new Uint32Array(2 ** Math.ceil(Math.log2(2 * Math.max(1, capacity))));
    const mask = slots.length - 1;
    const { groups, pids, tids, startsUnixNano } = this.#columns;
    for (let id = 0; id < this.#length; id++) {
      let slot = hash(groups[id]!, pids[id]!, tids[id]!, startsUnixNano[id]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = id + 1;
    }
    return slots;
  }
}

const emptyColumns = (rows: number): SeriesColumns => ({
  groups: new Uint32Array(rows),
  pids: new Float64Array(rows),
  tids: new Float64Array(rows),
  startsUnixNano: new BigUint64Array(rows),
});

function enlarged({ groups, pids, tids, startsUnixNano }: SeriesColumns): SeriesColumns {
  const larger = emptyColumns(2 * Math.max(INITIAL_ROWS, groups.length));
  larger.groups.set(groups);
  larger.pids.set(pids);
  larger.tids.set(tids);
  larger.startsUnixNano.set(startsUnixNano);
  return larger;
}

function groupKey(group: SeriesGroup): string {
  const { process, thread, path, command, containerId, cgroup, service, host, periodNanos, attributes } =
    group;
  const texts = [process, thread, path, command, containerId, cgroup, service, host, periodNanos, attributes];
  return texts.join('\0');
}

/** The finalizer of MurmurHash3 (32 bit) spreads the low bits that the mask keeps. */
function hash(group: number, pid: number, tid: number, startUnixNano: bigint): number {
  const start = Number(startUnixNano & 0xffff_ffffn);
  let mixed =
    Math.imul(group, HASH_KEYS[0]) ^
    Math.imul(pid, HASH_KEYS[1]) ^
    Math.imul(tid, HASH_KEYS[2]) ^
    Math.imul(start, HASH_KEYS[3]);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
