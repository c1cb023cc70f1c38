/**
 * Memory of live processes, as naming reads it: some ten small reads a function, most of them beside one another.
 * Pages are therefore read whole and kept for one batch of records, and no longer than one turn of the event loop; the
 * buffers that hold them are used again. Several batches come in one turn, tens of milliseconds apart on a busy machine:
 * a trace of the second may run through code that was not there yet when a page was read for the first.
 *
 * A read goes through another process and back, which costs ten times what copying a page does. Many frames are therefore
 * named together: what is missing of each is noted first ({@link OpenMemory.tryReading}), then read in one go.
 */
import type { Pid } from '../../common/base/brand.ts';
import type { ProcessMemory } from '../interpreters/contract.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';

const PAGE = 4096;
/** Of one turn; what is read beyond them is read without being kept. */
const MAX_PAGES = 256;
const SLAB_PAGES = 16;
/** As many as an answer of the reader has room for. */
const PAGES_A_READ = 16;
const GATHERED = new Uint8Array(PAGES_A_READ * PAGE);
/** Stands for a page that no buffer is left for. */
const NO_ROOM = new Uint8Array(0);
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
  of(pid: Pid): OpenMemory {
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

  get hasRoom(): boolean {
    return this.#used < MAX_PAGES;
  }

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

function newSession(): number {
  lastSession = (lastSession + 1) & MAX_SESSION;
  return lastSession;
}

/** Pages of 4 KiB, at most 16, of a process; undefined for each that can't be read. Valid until the next call. */
export function readPages(
  reader: Pick<ForeignReader, 'readPages'>,
  pid: Pid,
  addresses: readonly number[],
): (Uint8Array | undefined)[] {
  const mask = reader.readPages(pid, Float64Array.from(addresses), newSession(), GATHERED);
  return addresses.map((_, i) => (mask & (1 << i) ? GATHERED.subarray(i * PAGE, (i + 1) * PAGE) : undefined));
}

/** Thrown by a read that would have had to wait. No error: it is not a fault, and a stack trace costs more than all else here. */
const NOT_READ_YET = Symbol('not read yet');

export class OpenMemory implements ProcessMemory {
  readonly #reader: ForeignReader;
  readonly #pid: Pid;
  readonly #session: number;
  readonly #pool: PagePool;
  /** By number of the page; undefined for what can't be read. */
  readonly #pages = new Map<number, Uint8Array | undefined>();
  /** Numbers of pages that were missed. */
  readonly #missed = new Set<number>();
  #waits = true;

  constructor(reader: ForeignReader, pid: Pid, pool: PagePool) {
    this.#reader = reader;
    this.#pid = pid;
    this.#session = newSession();
    this.#pool = pool;
  }

  read(address: number, length: number): Uint8Array | undefined {
    const within = address % PAGE;
    const number = (address - within) / PAGE;
    if (within + length > PAGE) return this.#readAcross(number, within, length);
    const page = this.#page(number);
    return page === NO_ROOM
      ? this.#readInto(new Uint8Array(length), address)
      : page?.subarray(within, within + length);
  }

  /** What `read` returns; undefined where a page was missing, which {@link readMissed} reads. */
  tryReading<T>(read: (memory: ProcessMemory) => T): T | undefined {
    this.#waits = false;
    try {
      return read(this);
    } catch (error) {
      if (error === NOT_READ_YET) return undefined;
      throw error;
    } finally {
      this.#waits = true;
    }
  }

  /** Pages that were missed until now. */
  readMissed(): void {
    const numbers = [...this.#missed];
    this.#missed.clear();
    for (let i = 0; i < numbers.length && this.#pool.hasRoom; i += PAGES_A_READ)
      this.#readPages(numbers.slice(i, i + PAGES_A_READ));
  }

  #readPages(numbers: number[]): void {
    const addresses = Float64Array.from(numbers, (number) => number * PAGE);
    const mask = this.#reader.readPages(this.#pid, addresses, this.#session, GATHERED);
    for (let i = 0; i < numbers.length; i++) {
      const isRead = (mask & (1 << i)) !== 0;
      const page = isRead ? this.#pool.take() : undefined;
      if (isRead && !page) return;
      page?.set(GATHERED.subarray(i * PAGE, (i + 1) * PAGE));
      this.#pages.set(numbers[i]!, page);
    }
  }

  /** {@link NO_ROOM} where it is not kept. */
  #page(number: number): Uint8Array | undefined {
    const page = this.#pages.get(number);
    if (page || this.#pages.has(number)) return page;
    if (!this.#waits && this.#pool.hasRoom) {
      this.#missed.add(number);
      throw NOT_READ_YET;
    }
    const buffer = this.#pool.take();
    if (!buffer) return NO_ROOM;
    const bytes = this.#readInto(buffer, number * PAGE);
    const whole = bytes?.length === PAGE ? bytes : undefined;
    this.#pages.set(number, whole);
    return whole;
  }

  /** In one read, unless what lies on both sides is there. */
  #readAcross(number: number, within: number, length: number): Uint8Array | undefined {
    const [first, second] = [this.#pages.get(number), this.#pages.get(number + 1)];
    const bytes = new Uint8Array(length);
    if (!first || !second || within + length > 2 * PAGE) {
      if (!this.#waits && within + length <= 2 * PAGE) this.#missAcross(number);
      return this.#readInto(bytes, number * PAGE + within);
    }
    bytes.set(first.subarray(within));
    bytes.set(second.subarray(0, within + length - PAGE), PAGE - within);
    return bytes;
  }

  /** A page that can't be read leaves what is before it: both are asked for once, and what is there is read by itself then. */
  #missAcross(number: number): void {
    if (!this.#pool.hasRoom) return;
    const missed = [number, number + 1].filter((one) => !this.#pages.has(one));
    for (const one of missed) this.#missed.add(one);
    if (missed.length > 0) throw NOT_READ_YET;
  }

  #readInto(buffer: Uint8Array, address: number): Uint8Array | undefined {
    const count = this.#reader.readMemory(this.#pid, address, this.#session, buffer);
    // gone, not mapped, not allowed, or too late: for the caller all the same
    if (count === 0) return undefined;
    return count === buffer.length ? buffer : buffer.subarray(0, count);
  }
}
