/**
 * Tables of an OTLP dictionary while it is written: what is asked for each frame of each sample, so in columns of
 * numbers, which are kept from one request to the next.
 */
import { ProtoWriter } from '../../protobuf/proto-writer.ts';

const FIRST_ROOM = 256;
/** A table that was larger is made anew: one large request must not hold memory for good. */
const KEPT_ENTRIES = 16_384;
const KEPT_BYTES = 1 << 20;

/** Entries are told apart by their bytes; the zero entry has none. */
export class EntryTable {
  readonly #field: number;
  readonly #capacity: number;
  #out: ProtoWriter;
  /** Open addressing: indices of entries by the hash of their bytes, 0 where there is none. */
  #slots = new Int32Array(FIRST_ROOM * 2);
  #hashes = new Int32Array(FIRST_ROOM);
  /** Where each entry's bytes lie in what was written. */
  #starts = new Int32Array(FIRST_ROOM);
  #ends = new Int32Array(FIRST_ROOM);
  #count = 0;

  /** `field`: of the dictionary; `capacity`: bytes to begin with. */
  constructor(field: number, capacity: number) {
    this.#field = field;
    this.#capacity = capacity;
    this.#out = new ProtoWriter(capacity);
    this.clear();
  }

  /** Leaves the zero entry alone. */
  clear(): void {
    if (this.#count > KEPT_ENTRIES || this.#out.length > KEPT_BYTES) this.#makeAnew();
    else if (this.#count > 1) this.#slots.fill(0);
    this.#out.clear();
    this.#out.bytes(this.#field, new Uint8Array(0));
    this.#count = 1;
  }

  /** The index of the entry that was just written. */
  intern(entry: ProtoWriter): number {
    if (entry.length === 0) return 0;
    const hash = entry.hash();
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let index = this.#slots[slot]!; index !== 0; index = this.#slots[slot]!) {
      if (this.#hashes[index] === hash && this.#out.holds(entry, this.#starts[index]!, this.#ends[index]!))
        return index;
      slot = (slot + 1) & mask;
    }
    const index = this.#count++;
    this.#slots[slot] = index;
    this.#out.message(this.#field, entry);
    this.#hashes[index] = hash;
    this.#ends[index] = this.#out.length;
    this.#starts[index] = this.#out.length - entry.length;
    if (this.#count >= this.#hashes.length) this.#grow();
    return index;
  }

  finish(): Uint8Array {
    return this.#out.finish();
  }

  #grow(): void {
    this.#hashes = grown(this.#hashes);
    this.#starts = grown(this.#starts);
    this.#ends = grown(this.#ends);
    const slots = new Int32Array(this.#slots.length * 2);
    for (let index = 1; index < this.#count; index++) {
      let slot = this.#hashes[index]! & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = index;
    }
    this.#slots = slots;
  }

  #makeAnew(): void {
    this.#out = new ProtoWriter(this.#capacity);
    this.#slots = new Int32Array(FIRST_ROOM * 2);
    this.#hashes = new Int32Array(FIRST_ROOM);
    this.#starts = new Int32Array(FIRST_ROOM);
    this.#ends = new Int32Array(FIRST_ROOM);
  }
}

/** Texts of a request; which texts there are is remembered, as they are written, since nearly all come again in the next one. */
export class StringTable {
  readonly #field: number;
  #out = new ProtoWriter(16 << 10);
  #ids = new Map<string, number>();
  #known = new ProtoWriter(16 << 10);
  /** By ID: where the text ends among the known ones. */
  #ends = new Int32Array(FIRST_ROOM);
  /** By ID: the index in this request, 0 where it has none yet. */
  #indices = new Int32Array(FIRST_ROOM);
  /** IDs of the texts of this request. */
  #used = new Int32Array(FIRST_ROOM);
  #count = 0;
  #generation = 0;

  /** `field`: of the dictionary. */
  constructor(field: number) {
    this.#field = field;
    this.#makeAnew();
    this.clear();
  }

  /** IDs of another one mean nothing. */
  get generation(): number {
    return this.#generation;
  }

  /** Leaves the empty text alone. */
  clear(): void {
    for (let i = 1; i < this.#count; i++) this.#indices[this.#used[i]!] = 0;
    if (this.#ids.size > KEPT_ENTRIES || this.#known.length > KEPT_BYTES) this.#makeAnew();
    this.#out.clear();
    this.#out.string(this.#field, '');
    this.#count = 1;
  }

  indexOf(text: string): number {
    return this.indexOfId(this.idOf(text));
  }

  /** The same from one request to the next, as long as the generation is; 0 of the empty text. */
  idOf(text: string): number {
    let id = this.#ids.get(text);
    if (id === undefined) {
      id = this.#ids.size;
      this.#ids.set(text, id);
      if (id >= this.#ends.length) {
        this.#ends = grown(this.#ends);
        this.#indices = grown(this.#indices);
      }
      this.#known.string(this.#field, text);
      this.#ends[id] = this.#known.length;
    }
    return id;
  }

  indexOfId(id: number): number {
    if (id === 0) return 0;
    let index = this.#indices[id]!;
    if (index === 0) {
      index = this.#count++;
      if (index >= this.#used.length) this.#used = grown(this.#used);
      this.#used[index] = id;
      this.#indices[id] = index;
      this.#out.copy(this.#known, this.#ends[id - 1]!, this.#ends[id]!);
    }
    return index;
  }

  finish(): Uint8Array {
    return this.#out.finish();
  }

  #makeAnew(): void {
    this.#generation++;
    this.#out = new ProtoWriter(16 << 10);
    this.#known = new ProtoWriter(16 << 10);
    this.#ids = new Map([['', 0]]);
    this.#ends = new Int32Array(FIRST_ROOM);
    this.#indices = new Int32Array(FIRST_ROOM);
    this.#used = new Int32Array(FIRST_ROOM);
    this.#count = 0;
  }
}

function grown(column: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(column.length * 2);
  larger.set(column);
  return larger;
}
