/** Memory of a BEAM, which runs on while it is read: what is not there ends the reading, with a reason. */
import type { NameFailure, ProcessMemory } from '../contract.ts';

/** Thrown inside the plug-in, which returns the reason. */
export class CannotRead extends Error {
  override readonly name = 'CannotRead';
  readonly reason: NameFailure;

  constructor(reason: NameFailure) {
    super(reason);
    this.reason = reason;
  }
}

const MAX_ADDRESS = 2 ** 47;

export class VmMemory {
  readonly #memory: ProcessMemory;

  constructor(memory: ProcessMemory) {
    this.#memory = memory;
  }

  /** Valid until the next turn of the event loop. */
  view(address: number, length: number): DataView {
    if (!(address > 0 && address + length < MAX_ADDRESS)) throw new CannotRead('malformed');
    const bytes = this.#memory.read(address, length);
    if (bytes?.length !== length) throw new CannotRead('unreadable');
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  u32(address: number): number {
    return this.view(address, 4).getUint32(0, true);
  }

  /** A word; what is no address is larger than any. */
  word(address: number): number {
    return wordAt(this.view(address, 8), 0);
  }
}

export const wordAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
