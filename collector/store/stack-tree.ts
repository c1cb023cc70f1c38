import { hashPair } from './pair-table.ts';

const INITIAL_CAPACITY = 256;

/**
 * Stacks that share their outer frames, as parent pointers: 8 bytes a node, 8 to 16 more for the hash table
 * that finds the child of a parent. Node 0 is the root; children have larger ids than their parent.
 */
export class StackTree {
  parents: Uint32Array<ArrayBuffer>;
  frames: Uint32Array<ArrayBuffer>;
  size = 1;
  /** Open addressing; a slot holds a node id, 0 when free (the root is nobody's child). */
  #slots: Uint32Array;

  /** @param expected nodes: with so many it need not grow */
  constructor(expected = 0) {
    const capacity = Math.max(INITIAL_CAPACITY, 2 ** Math.ceil(Math.log2(expected + 1)));
    this.parents = new Uint32Array(capacity);
    this.frames = new Uint32Array(capacity);
    this.#slots = new Uint32Array(2 * capacity);
  }

  get bytes(): number {
    return this.parents.byteLength + this.frames.byteLength + this.#slots.byteLength;
  }

  /** The child of `parent` for `frame`, added if there is none yet. */
  child(parent: number, frame: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashPair(parent, frame) & mask;
    // the newest node has no child yet, which spares looking at others
    const isNew = parent === this.size - 1;
    for (let node = this.#slots[slot]!; node !== 0; node = this.#slots[slot]!) {
      if (!isNew && this.parents[node] === parent && this.frames[node] === frame) return node;
      slot = (slot + 1) & mask;
    }
    return this.#add(parent, frame, slot);
  }

  #add(parent: number, frame: number, slot: number): number {
    const node = this.size++;
    if (node === this.parents.length) {
      this.parents = grow(this.parents);
      this.frames = grow(this.frames);
      this.#slots = new Uint32Array(this.parents.length * 2);
      this.parents[node] = parent;
      this.frames[node] = frame;
      for (let known = 1; known <= node; known++) this.#place(known);
      return node;
    }
    this.parents[node] = parent;
    this.frames[node] = frame;
    this.#slots[slot] = node;
    return node;
  }

  #place(node: number): void {
    const mask = this.#slots.length - 1;
    let slot = hashPair(this.parents[node]!, this.frames[node]!) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = node;
  }
}

function grow(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(array.length * 2);
  larger.set(array);
  return larger;
}
