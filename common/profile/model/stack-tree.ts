/**
 * Stacks as paths of a tree: stacks that share their callers share nodes, so that a file whose stacks grow by a frame at a
 * time costs a node for each and not a copy of the whole.
 */
import { HASH_KEYS } from '../../base/hash-keys.ts';

export const ROOT = 0;
const FIRST_ROOM = 1024;

export class StackTree {
  #callers = new Int32Array(FIRST_ROOM);
  #locations = new Int32Array(FIRST_ROOM);
  #depths = new Int32Array(FIRST_ROOM);
  #count = 1;
  /** Open addressing; 0 is free, since the root is nobody's child. */
  #slots = new Int32Array(2 * FIRST_ROOM);

  get nodeCount(): number {
    return this.#count;
  }

  caller(node: number): number {
    return this.#callers[node]!;
  }

  location(node: number): number {
    return this.#locations[node]!;
  }

  depth(node: number): number {
    return this.#depths[node]!;
  }

  /** The node of `location` below its caller's. */
  enter(caller: number, location: number): number {
    const mask = this.#slots.length - 1;
    let slot = hashOf(caller, location) & mask;
    for (let node = this.#slots[slot]!; node !== ROOT; node = this.#slots[slot]!) {
      if (this.#callers[node] === caller && this.#locations[node] === location) return node;
      slot = (slot + 1) & mask;
    }
    const node = this.#add(caller, location);
    this.#slots[slot] = node;
    if (2 * this.#count > this.#slots.length) this.#growSlots();
    return node;
  }

  /** Leaf first. */
  path(node: number): Uint32Array<ArrayBuffer> {
    const path = new Uint32Array(this.depth(node));
    for (let i = 0; i < path.length; i++) {
      path[i] = this.#locations[node]!;
      node = this.#callers[node]!;
    }
    return path;
  }

  #add(caller: number, location: number): number {
    if (this.#count === this.#callers.length) {
      this.#callers = doubled(this.#callers);
      this.#locations = doubled(this.#locations);
      this.#depths = doubled(this.#depths);
    }
    const node = this.#count++;
    this.#callers[node] = caller;
    this.#locations[node] = location;
    this.#depths[node] = this.#depths[caller]! + 1;
    return node;
  }

  #growSlots(): void {
    const slots = new Int32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let node = 1; node < this.#count; node++) {
      let slot = hashOf(this.#callers[node]!, this.#locations[node]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = node;
    }
    this.#slots = slots;
  }
}

function doubled(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length);
  larger.set(array);
  return larger;
}

function hashOf(caller: number, location: number): number {
  const hash = Math.imul(Math.imul(caller, HASH_KEYS[0]) ^ location, HASH_KEYS[1]);
  return (hash ^ (hash >>> 15)) >>> 0;
}
