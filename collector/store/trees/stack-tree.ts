import { hashPair } from './pair-table.ts';

const INITIAL_CAPACITY = 256;

/**
 * Stacks that share their outer frames, as parent pointers. Node 0 is the root; children have larger ids than their parent.
 * Most nodes are the only child of the one before, so a node knows its first child, which costs no look-up far away; only
 * the others are in a hash table. 12 to 24 bytes a node, and 6 to 12 more for each other child.
 */
export class StackTree {
  parents: Uint32Array<ArrayBuffer>;
  frames: Uint32Array<ArrayBuffer>;
  size = 1;
  /** 0: none, as the root is nobody's child. */
  #firstChildren: Uint32Array<ArrayBuffer>;
  /** Open addressing; a slot holds the id of a child that is not the first, 0 when free. */
  #slots = new Uint32Array(INITIAL_CAPACITY);
  #others = 0;

  /** @param expected nodes: with so many it need not grow */
  constructor(expected = 0) {
    const capacity = Math.max(INITIAL_CAPACITY, 2 ** Math.ceil(Math.log2(expected + 1)));
    this.parents = new Uint32Array(capacity);
    this.frames = new Uint32Array(capacity);
    this.#firstChildren = new Uint32Array(capacity);
  }

  get bytes(): number {
    return 3 * this.parents.byteLength + this.#slots.byteLength;
  }

  /** The child of `parent` for `frame`, added if there is none yet. */
  child(parent: number, frame: number): number {
    const first = this.#firstChildren[parent]!;
    if (first === 0) {
      const node = this.#append(parent, frame);
      this.#firstChildren[parent] = node;
      return node;
    }
    return this.frames[first] === frame ? first : this.#otherChild(parent, frame);
  }

  #otherChild(parent: number, frame: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashPair(parent, frame) & mask;
    for (let node = this.#slots[slot]!; node !== 0; node = this.#slots[slot]!) {
      if (this.parents[node] === parent && this.frames[node] === frame) return node;
      slot = (slot + 1) & mask;
    }
    const node = this.#append(parent, frame);
    this.#slots[slot] = node;
    if (3 * ++this.#others > 2 * this.#slots.length) this.#growSlots();
    return node;
  }

  #append(parent: number, frame: number): number {
    const node = this.size++;
    if (node === this.parents.length) {
      this.parents = grow(this.parents);
      this.frames = grow(this.frames);
      this.#firstChildren = grow(this.#firstChildren);
    }
    this.parents[node] = parent;
    this.frames[node] = frame;
    return node;
  }

  #growSlots(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(2 * old.length);
    for (const node of old) if (node !== 0) this.#place(node);
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
