/**
 * Memory of live processes, as naming reads it: some ten small reads a function, most of them beside one another.
 * Pages are therefore read whole and kept for one batch of records, and no longer than one turn of the event loop; the
 * buffers that hold them are used again. Several batches come in one turn, tens of milliseconds apart on a busy machine:
 * a trace of the second may run through code that was not there yet when a page was read for the first.
 */
import type { Pid } from '../../common/base/brand.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import type { ProcessMemory } from './contract.ts';

const PAGE = 4096;
/** Of one turn; what is read beyond them is read without being kept. */
const MAX_PAGES = 256;
const SLAB_PAGES = 16;
const MAX_OPEN = 16;
/** The upper half are the reader's own. */
const MAX_SESSION = 0x7fff_ffff;

export class ProcessMemories {
  readonly #reader: ForeignReader;
  readonly #pool = new PagePool();
  readonly #open = new Map<Pid, OpenMemory>();

  constructor(reader: ForeignReader) {
    this.#reader = reader;
  }

  /** Valid, like all that is read through it, until {@link renew} or until the event loop goes on. */
  of(pid: Pid): ProcessMemory {
    let memory = this.#open.get(pid);
    if (!memory) {
      if (this.#open.size === 0) setImmediate(() => this.#closeAll());
      else if (this.#open.size >= MAX_OPEN) this.#closeAll();
      memory = new OpenMemory(this.#reader, pid, this.#pool);
      this.#open.set(pid, memory);
    }
    return memory;
  }

  /** Forgets what was read: the next frames may be younger. */
  renew(): void {
    if (this.#open.size > 0) this.#closeAll();
  }

  #closeAll(): void {
    this.#open.clear();
    this.#pool.reset();
  }
}

/** Buffers of one page each. */
class PagePool {
  readonly #pages: Uint8Array[] = [];
  #used = 0;

  /** Undefined where all are in use. */
  take(): Uint8Array | undefined {
    if (this.#used === MAX_PAGES) return undefined;
    if (this.#used === this.#pages.length) {
      const slab = new Uint8Array(SLAB_PAGES * PAGE);
      for (let i = 0; i < SLAB_PAGES; i++) this.#pages.push(slab.subarray(i * PAGE, (i + 1) * PAGE));
    }
    return this.#pages[this.#used++];
  }

  reset(): void {
    this.#used = 0;
  }
}

let lastSession = 0;

class OpenMemory implements ProcessMemory {
  readonly #reader: ForeignReader;
  readonly #pid: Pid;
  readonly #session: number;
  readonly #pool: PagePool;
  /** By number of the page; undefined for what can't be read. */
  readonly #pages = new Map<number, Uint8Array | undefined>();

  constructor(reader: ForeignReader, pid: Pid, pool: PagePool) {
    this.#reader = reader;
    this.#pid = pid;
    lastSession = (lastSession + 1) & MAX_SESSION;
    this.#session = lastSession;
    this.#pool = pool;
  }

  read(address: number, length: number): Uint8Array | undefined {
    const within = address % PAGE;
    if (within + length > PAGE) return this.#readInto(new Uint8Array(length), address);
    const number = (address - within) / PAGE;
    let page = this.#pages.get(number);
    if (!page && !this.#pages.has(number)) {
      const buffer = this.#pool.take();
      if (!buffer) return this.#readInto(new Uint8Array(length), address);
      page = this.#readInto(buffer, number * PAGE);
      this.#pages.set(number, page);
    }
    return page?.length === PAGE ? page.subarray(within, within + length) : undefined;
  }

  #readInto(buffer: Uint8Array, address: number): Uint8Array | undefined {
    const count = this.#reader.readMemory(this.#pid, address, this.#session, buffer);
    // gone, not mapped, not allowed, or too late: for the caller all the same
    if (count === 0) return undefined;
    return count === buffer.length ? buffer : buffer.subarray(0, count);
  }
}
