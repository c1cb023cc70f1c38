/** Tables of what indices of one table of a request mean elsewhere. */
import type { IntList } from '../../protobuf/proto-reader.ts';

const UNSEEN = -1;

/** Index of a request's table → index in a profile's own, or why it has none there. */
export class EntryMap {
  readonly #indices: Int32Array;
  /** The round in which an index was set: emptying the map for the next profile touches none of them. */
  readonly #rounds: Int32Array;
  #round = 0;
  readonly #problems = new Map<number, Error>();

  constructor(length: number) {
    this.#indices = new Int32Array(length);
    this.#rounds = new Int32Array(length);
  }

  clear(): void {
    this.#round++;
    this.#problems.clear();
  }

  /** Entry 0, which means none, is 0; -1 where nothing was set. */
  find(old: number): number {
    if (old === 0) return 0;
    return this.#rounds[old] === this.#round ? this.#indices[old]! : UNSEEN;
  }

  set(old: number, index: number): void {
    this.#indices[old] = index;
    this.#rounds[old] = this.#round;
  }

  problemOf(old: number): Error | undefined {
    return this.#problems.size === 0 ? undefined : this.#problems.get(old);
  }

  setProblem(old: number, problem: Error): void {
    this.#problems.set(old, problem);
  }
}

const ROOM = 16_384;

/** Arrays of indices as views of few buffers: one each would be memory outside of the heap. */
export class IndexRoom {
  #free = new Uint32Array(0);

  /** A copy. */
  take({ values, length }: IntList): Uint32Array<ArrayBuffer> {
    if (length > this.#free.length) this.#free = new Uint32Array(Math.max(ROOM, length));
    const taken = this.#free.subarray(0, length);
    this.#free = this.#free.subarray(length);
    for (let i = 0; i < length; i++) taken[i] = values[i]!;
    return taken;
  }
}

/** Whoever makes lists with one hash on purpose gets a new id for those that would stand further away from where it leads. */
const MAX_STEPS = 64;

/** Lists of integers, each once (but see {@link MAX_STEPS}); ids count from 0. */
export class SequenceTable {
  /** Each list's length, then its values. */
  #words = new Int32Array(64);
  #end = 0;
  readonly #starts: number[] = [];
  /** Open addressing; a slot holds an id and 1, 0 when free. */
  #slots = new Int32Array(32);

  intern(list: IntList): number {
    const mask = this.#slots.length - 1;
    let slot = hashOf(list.values, 0, list.length) & mask;
    let steps = 0;
    for (let id = this.#slots[slot]! - 1; id >= 0 && steps < MAX_STEPS; id = this.#slots[slot]! - 1) {
      if (this.#isSame(this.#starts[id]!, list)) return id;
      slot = (slot + 1) & mask;
      steps++;
    }
    const id = this.#starts.push(this.#end) - 1;
    if (steps < MAX_STEPS) this.#slots[slot] = id + 1;
    this.#append(list);
    if (2 * this.#starts.length > this.#slots.length) this.#grow();
    return id;
  }

  #isSame(start: number, { values, length }: IntList): boolean {
    if (this.#words[start] !== length) return false;
    for (let i = 0; i < length; i++) if (this.#words[start + 1 + i] !== values[i]) return false;
    return true;
  }

  #append(list: IntList): void {
    const end = this.#end + 1 + list.length;
    if (end > this.#words.length) {
      const larger = new Int32Array(2 * end);
      larger.set(this.#words);
      this.#words = larger;
    }
    this.#words[this.#end] = list.length;
    this.#words.set(list.view(), this.#end + 1);
    this.#end = end;
  }

  #grow(): void {
    const slots = new Int32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (const [id, start] of this.#starts.entries()) {
      let slot = hashOf(this.#words, start + 1, this.#words[start]!) & mask;
      let steps = 0;
      for (; slots[slot] !== 0 && steps < MAX_STEPS; steps++) slot = (slot + 1) & mask;
      if (steps < MAX_STEPS) slots[slot] = id + 1;
    }
    this.#slots = slots;
  }
}

/** FNV-1a by word; its low bits take the high ones in. */
function hashOf(values: Int32Array, start: number, length: number): number {
  let hash = length;
  for (let i = start; i < start + length; i++) {
    hash = Math.imul(hash ^ values[i]!, 0x0100_0193);
    hash ^= hash >>> 15;
  }
  return hash;
}
