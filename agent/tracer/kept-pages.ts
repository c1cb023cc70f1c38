/** Memory of threads that do not run, in the map that BPF reads it from: see ebpf/off-cpu/pages.h. */
import type { Pid } from '../../common/base/brand.ts';
import type { Native } from '../base/native.ts';
import { EF_KEPT_PAGE_BYTES, EF_KEPT_PAGES, PAGE_KEY } from '../records/records.gen.ts';

/** Pages of 4 KiB of a process; undefined for each that can't be read. */
export type ReadPages = (pid: Pid, addresses: readonly number[]) => (Uint8Array | undefined)[];

const PAGE = EF_KEPT_PAGE_BYTES;

export class KeptPages {
  readonly #native: Native;
  readonly #map: number;
  readonly #readPages: ReadPages;
  readonly #keys = new Map<string, Buffer>();
  read = 0;

  constructor(native: Native, map: number, readPages: ReadPages) {
    this.#native = native;
    this.#map = map;
    this.#readPages = readPages;
  }

  /** `count` of them from `first` on, unless they are there. False where there is no room for the first. */
  add(pid: Pid, first: number, count: number): boolean {
    const addresses = Array.from({ length: count }, (_, i) => first + i * PAGE).filter(
      (address) => !this.#keys.has(`${pid} ${address}`),
    );
    const contents = this.#readPages(pid, addresses);
    for (const [i, address] of addresses.entries()) {
      if (this.#keys.size === EF_KEPT_PAGES) return i > 0;
      this.#put(pid, address, contents[i]);
    }
    return true;
  }

  #put(pid: Pid, address: number, content: Uint8Array | undefined): void {
    const key = Buffer.alloc(PAGE_KEY.bytes);
    key.writeBigUInt64LE(BigInt(address), PAGE_KEY.address);
    key.writeUInt32LE(pid, PAGE_KEY.tgid);
    const value = Buffer.alloc(PAGE + 8);
    if (content) value.set(content);
    else value.writeUInt8(1, PAGE);
    this.#native.mapUpdate(this.#map, key, value, 0);
    this.#keys.set(`${pid} ${address}`, key);
    this.read++;
  }

  clear(): void {
    for (const key of this.#keys.values()) this.#native.mapDelete(this.#map, key);
    this.#keys.clear();
  }
}
