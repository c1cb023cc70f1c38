/** Entries of processes in the BPF maps of the runtimes that are attached to. */
import type { FileKey } from '../../common/base/brand.ts';
import type { Native } from '../base/native.ts';
import { PROCESS_ID, PROCESS_RUNTIMES } from '../records/records.gen.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { SamplerPart } from './sampler-part.ts';
import type { Samplers } from './samplers.ts';

const BPF_ANY = 0;

const keyBytes = ({ pid, execId, startBoottimeNs }: ProcessIdentity): Buffer => {
  const bytes = Buffer.alloc(PROCESS_ID.bytes);
  bytes.writeUInt32LE(pid, PROCESS_ID.tgid);
  bytes.writeUInt32LE(execId, PROCESS_ID.execId);
  bytes.writeBigUInt64LE(startBoottimeNs, PROCESS_ID.startBoottimeNs);
  return bytes;
};

export class Attachments {
  readonly #native: Pick<Native, 'mapLookup' | 'mapUpdate' | 'mapDelete'>;
  readonly #samplers: Pick<Samplers, 'mapFd' | 'processRuntimesFd'>;

  constructor(
    native: Pick<Native, 'mapLookup' | 'mapUpdate' | 'mapDelete'>,
    samplers: Pick<Samplers, 'mapFd' | 'processRuntimesFd'>,
  ) {
    this.#native = native;
    this.#samplers = samplers;
  }

  publish(plugin: SamplerPart, process: ProcessIdentity, entry: Buffer): boolean {
    const fd = this.#samplers.mapFd(plugin);
    if (fd === undefined) return false;
    try {
      this.#native.mapUpdate(fd, keyBytes(process), entry, BPF_ANY);
      return true;
    } catch {
      return false;
    }
  }

  tellRuntimes(
    process: ProcessIdentity,
    files: readonly { id: number; key: FileKey; base: number }[],
    isComplete: boolean,
  ): void {
    const fd = this.#samplers.processRuntimesFd();
    if (fd === undefined) return;
    const key = keyBytes(process);
    // BPF may have noted some itself, and knows when it asks again
    const entry =
      this.#native.mapLookup(fd, key, PROCESS_RUNTIMES.bytes) ?? Buffer.alloc(PROCESS_RUNTIMES.bytes);
    let detected = entry.readUInt32LE(PROCESS_RUNTIMES.detected);
    for (const { id, key: file, base } of files) {
      detected |= 1 << id;
      entry.writeBigUInt64LE(BigInt(`0x${file}`), PROCESS_RUNTIMES.files + id * 8);
      entry.writeBigInt64LE(-BigInt(base), PROCESS_RUNTIMES.deltas + id * 8);
    }
    entry.writeUInt32LE(detected >>> 0, PROCESS_RUNTIMES.detected);
    entry.writeUInt32LE(isComplete ? 1 : 0, PROCESS_RUNTIMES.isAnswered);
    try {
      this.#native.mapUpdate(fd, key, entry, BPF_ANY);
    } catch {
      // BPF asks again
    }
  }

  withdraw(plugin: SamplerPart, process: ProcessIdentity): void {
    const fd = this.#samplers.mapFd(plugin);
    if (fd !== undefined) this.#native.mapDelete(fd, keyBytes(process));
  }
}
