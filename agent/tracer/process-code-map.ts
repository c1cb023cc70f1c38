/** Entries of the BPF map that says which table holds for executable memory of a process: struct ef_code. */

import type { Native, NativeBpfObject } from '../base/native.ts';
import { CODE, CODE_KEY } from '../records/records.gen.ts';
import type { ProcessCodeEntry, ProcessIdentity } from '../records/records.ts';

const BPF_ANY = 0;

export class ProcessCodeMap {
  readonly #native: Pick<Native, 'mapUpdate' | 'mapDelete'>;
  readonly #object: Pick<NativeBpfObject, 'mapFd'>;

  constructor(native: Pick<Native, 'mapUpdate' | 'mapDelete'>, object: Pick<NativeBpfObject, 'mapFd'>) {
    this.#native = native;
    this.#object = object;
  }

  /** False where the map is full. */
  publish({ process, start, key, delta, isJit }: ProcessCodeEntry): boolean {
    const value = Buffer.alloc(CODE.bytes);
    value.writeUInt32LE(process.pid, CODE.processTgid);
    value.writeUInt32LE(process.execId, CODE.processExecId);
    value.writeBigUInt64LE(process.startBoottimeNs, CODE.processStartBoottimeNs);
    value.writeBigUInt64LE(BigInt(`0x${key}`), CODE.key);
    value.writeBigInt64LE(BigInt(delta), CODE.delta);
    value.writeUInt32LE(isJit ? 1 : 0, CODE.isJit);
    try {
      this.#native.mapUpdate(this.#object.mapFd('process_code'), keyBytes(process, start), value, BPF_ANY);
      return true;
    } catch {
      return false;
    }
  }

  withdraw(process: ProcessIdentity, start: number): void {
    this.#native.mapDelete(this.#object.mapFd('process_code'), keyBytes(process, start));
  }
}

function keyBytes({ pid }: ProcessIdentity, start: number): Buffer {
  const bytes = Buffer.alloc(CODE_KEY.bytes);
  bytes.writeUInt32LE(pid, CODE_KEY.tgid);
  bytes.writeBigUInt64LE(BigInt(start), CODE_KEY.start);
  return bytes;
}
