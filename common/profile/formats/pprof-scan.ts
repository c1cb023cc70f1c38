import { BadProtobuf, ProtoReader } from '../../protobuf/proto-reader.ts';
import type { ReadBudget } from '../model/read-limits.ts';

/** What an entry of a table becomes, decoded and then as a profile's; of a message in it; of a byte of numbers or text. */
const ENTRY_BYTES = 700;
const STRING_BYTES = 48;
const PART_BYTES = 300;
const NUMBER_BYTES = 24;
const TEXT_BYTES = 3;

const [SAMPLE, LOCATION, STRING] = [2, 4, 6];
const NAMES: Record<number, string> = {
  1: 'sample types',
  2: 'samples',
  3: 'mappings',
  4: 'locations',
  5: 'functions',
};
const LENGTH_DELIMITED = 2;

/** Counts what a pprof file would become, as its bytes come and before any of it does. */
export class PprofScan {
  readonly #budget: ReadBudget;
  #at = 0;

  constructor(budget: ReadBudget) {
    this.#budget = budget;
  }

  /**
   * @param bytes all that came so far; fields that are not whole yet are looked at the next time
   * @throws ReadLimitError
   */
  advance(bytes: Uint8Array): void {
    const reader = new ProtoReader(bytes);
    while (this.#at < bytes.length) {
      reader.at = this.#at;
      try {
        this.#field(reader);
      } catch (error) {
        // whether it is cut for good, or only its end has not come yet, is for who decodes it to say
        if (error instanceof BadProtobuf) return;
        throw error;
      }
      this.#at = reader.at;
    }
  }

  /** At the end of the file. @throws Error where that is in the middle of a field */
  finish(bytes: Uint8Array): void {
    if (this.#at < bytes.length) throw new Error('it ends in the middle of a field: it is cut');
  }

  #field(reader: ProtoReader): void {
    const tag = reader.int32();
    const field = tag >>> 3;
    if ((tag & 7) !== LENGTH_DELIMITED) {
      reader.skip(tag);
      this.#budget.spend('fields', NUMBER_BYTES);
      return;
    }
    const end = reader.end();
    const length = end - reader.at;
    if (field === STRING) this.#budget.spend('strings', STRING_BYTES + TEXT_BYTES * length);
    else {
      // labels of a sample and lines of a location are messages in a message: two bytes each at least
      const parts = field === SAMPLE || field === LOCATION ? countParts(reader, end) : 0;
      const bytes = ENTRY_BYTES + NUMBER_BYTES * length + PART_BYTES * parts;
      this.#budget.spend(NAMES[field] ?? 'fields', bytes);
    }
    reader.at = end;
  }
}

/** Length-delimited fields in a message that ends there. */
function countParts(reader: ProtoReader, end: number): number {
  let parts = 0;
  while (reader.at < end) {
    const tag = reader.int32();
    reader.skip(tag);
    if ((tag & 7) === LENGTH_DELIMITED) parts++;
  }
  return parts;
}
