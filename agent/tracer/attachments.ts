/** Entries of processes in the BPF maps of the runtimes that are attached to. */
import type { RuntimePlugin } from '../interpreters/contract.ts';
import type { AttachmentMap } from '../interpreters/process-runtimes.ts';
import type { Native } from './native.ts';
import { PROCESS_ID } from './records.gen.ts';
import type { ProcessIdentity } from './records.ts';
import type { Samplers } from './samplers.ts';

const BPF_ANY = 0;

const keyBytes = ({ pid, execId, startBoottimeNs }: ProcessIdentity): Buffer => {
  const bytes = Buffer.alloc(PROCESS_ID.bytes);
  bytes.writeUInt32LE(pid, PROCESS_ID.tgid);
  bytes.writeUInt32LE(execId, PROCESS_ID.execId);
  bytes.writeBigUInt64LE(startBoottimeNs, PROCESS_ID.startBoottimeNs);
  return bytes;
};

export class Attachments implements AttachmentMap {
  readonly #native: Pick<Native, 'mapUpdate' | 'mapDelete'>;
  readonly #samplers: Pick<Samplers, 'mapFd'>;

  constructor(native: Pick<Native, 'mapUpdate' | 'mapDelete'>, samplers: Pick<Samplers, 'mapFd'>) {
    this.#native = native;
    this.#samplers = samplers;
  }

  publish(plugin: RuntimePlugin, process: ProcessIdentity, entry: Buffer): boolean {
    const fd = this.#samplers.mapFd(plugin);
    if (fd === undefined) return false;
    try {
      this.#native.mapUpdate(fd, keyBytes(process), entry, BPF_ANY);
      return true;
    } catch {
      return false;
    }
  }

  withdraw(plugin: RuntimePlugin, process: ProcessIdentity): void {
    const fd = this.#samplers.mapFd(plugin);
    if (fd !== undefined) this.#native.mapDelete(fd, keyBytes(process));
  }
}
