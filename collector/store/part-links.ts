/**
 * The links of a part's samples, as numbers in one array. Where each request is a span, nearly every sample has a link of its
 * own: as texts they would take ten times as much as the samples do.
 */

import { HASH_KEYS } from '../../common/base/hash-keys.ts';
import type { LinkLabel } from '../../common/profile/filters/filter.ts';
import type { Link } from '../../common/profile/model/profile.ts';

/** Of a link: the trace's ID, then the span's. */
const BYTES = 24;
/** The same as 32-bit words. */
const WORDS = BYTES / 4;
const FIRST_ROOM = 256;
/** Bytes of an ID in those of a link. */
const PLACES: Record<LinkLabel, { start: number; end: number }> = {
  trace_id: { start: 0, end: 16 },
  span_id: { start: 16, end: BYTES },
};

/** IDs as 64-bit numbers, 0 for none. */
export interface LinkNumbers {
  tracesHigh: BigUint64Array;
  tracesLow: BigUint64Array;
  spans: BigUint64Array;
}

/** Link 0 is none; ids stay. */
export class PartLinks {
  #bytes = Buffer.alloc(0);
  #words = new Uint32Array(0);
  /** Open addressing; a slot holds an id, 0 when free. */
  #slots = new Uint32Array(0);
  #length = 1;

  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    return this.#bytes.length + this.#slots.byteLength;
  }

  indexOf(link: Link): number {
    if (link.traceId === '' && link.spanId === '') return 0;
    if (2 * this.#length >= this.#slots.length) this.#makeSlots();
    const id = this.#length;
    this.#write(id, link);
    const slot = this.#slotOf(id);
    const known = this.#slots[slot]!;
    if (known !== 0) return known;
    this.#slots[slot] = id;
    this.#length++;
    return id;
  }

  /** One that is not there yet; only of links that are not asked for with {@link indexOf}. */
  append(link: Link): void {
    this.#write(this.#length++, link);
  }

  /** The same of numbers, in any order of ids. */
  put(id: number, traceHigh: bigint, traceLow: bigint, span: bigint): void {
    this.#reserve(id);
    this.#bytes.writeBigUInt64BE(traceHigh, BYTES * id);
    this.#bytes.writeBigUInt64BE(traceLow, BYTES * id + 8);
    this.#bytes.writeBigUInt64BE(span, BYTES * id + 16);
    this.#length = Math.max(this.#length, id + 1);
  }

  /** The ID of a link in hex digits, '' for none. */
  value(id: number, label: LinkLabel): string {
    const { start, end } = PLACES[label];
    for (let at = WORDS * id + start / 4; id > 0 && at < WORDS * id + end / 4; at++)
      if (this.#words[at] !== 0) return this.#bytes.toString('hex', BYTES * id + start, BYTES * id + end);
    return '';
  }

  at(id: number): Link {
    return { traceId: this.value(id, 'trace_id'), spanId: this.value(id, 'span_id') };
  }

  /** 1 for each link that has one of these IDs, as {@link value} writes them. */
  having(label: LinkLabel, values: readonly string[]): Uint8Array {
    const { start, end } = PLACES[label];
    const wanted = new Set(values);
    const mask = new Uint8Array(this.#length);
    // nearly all others differ in their first word
    const words = new Set([...wanted].map((value) => idBytes(value, end - start).readUInt32LE()));
    for (let id = 1; id < mask.length; id++)
      if (words.has(this.#words[WORDS * id + start / 4]!) && wanted.has(this.value(id, label))) mask[id] = 1;
    if (wanted.has('')) mask[0] = 1;
    return mask;
  }

  /** From the first to before the second. */
  slice(from: number, to: number): LinkNumbers {
    const column = (offset: number): BigUint64Array => {
      const found = new BigUint64Array(to - from);
      for (let i = 0; i < found.length; i++)
        found[i] = this.#bytes.readBigUInt64BE(BYTES * (from + i) + offset);
      return found;
    };
    return { tracesHigh: column(0), tracesLow: column(8), spans: column(16) };
  }

  #write(id: number, { traceId, spanId }: Link): void {
    this.#reserve(id);
    this.#words.fill(0, WORDS * id, WORDS * (id + 1));
    this.#bytes.write(traceId, BYTES * id, 16, 'hex');
    this.#bytes.write(spanId, BYTES * id + 16, 8, 'hex');
  }

  #reserve(id: number): void {
    if (BYTES * (id + 1) <= this.#bytes.length) return;
    // not of the pool: words are at multiples of 4 bytes
    const larger = Buffer.alloc(BYTES * Math.max(FIRST_ROOM, 2 * id));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#words = new Uint32Array(larger.buffer, larger.byteOffset, larger.length / 4);
  }

  /** Where an equal link stands, or where there is none. */
  #slotOf(id: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#hash(id) & mask;
    for (let known = this.#slots[slot]!; known !== 0; known = this.#slots[slot]!) {
      if (this.#isSame(known, id)) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #isSame(a: number, b: number): boolean {
    for (let i = 0; i < WORDS; i++)
      if (this.#words[WORDS * a + i] !== this.#words[WORDS * b + i]) return false;
    return true;
  }

  #hash(id: number): number {
    let hash = 0;
    for (let i = 0; i < WORDS; i++) {
      hash = Math.imul(hash ^ this.#words[WORDS * id + i]!, HASH_KEYS[i % HASH_KEYS.length]!);
      hash ^= hash >>> 15;
    }
    return hash;
  }

  #makeSlots(): void {
    this.#slots = new Uint32Array(Math.max(FIRST_ROOM, 2 * this.#slots.length));
    for (let id = 1; id < this.#length; id++) this.#slots[this.#slotOf(id)] = id;
  }
}

/** Of a part without links: nothing is added to it. */
export const NO_LINKS = new PartLinks();

/** Zeros for none, and for what is not an ID. */
function idBytes(digits: string, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  if (digits.length === 2 * length) bytes.write(digits, 'hex');
  return bytes;
}
