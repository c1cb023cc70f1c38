/** A scratch in memory that finds what was stored in it, as one does that an earlier run has filled. */
import { bufferSource } from '../../common/base/byte-source.ts';
import type { Scratch } from '../../common/symbols/scratch.ts';

export class KeptScratch implements Scratch {
  readonly isOutside = true;
  readonly names: (string | undefined)[] = [];
  readonly #stored = new Map<string, Uint8Array>();

  store(bytes: Uint8Array, name?: string): ReturnType<typeof bufferSource> {
    this.names.push(name);
    if (name !== undefined) this.#stored.set(name, bytes);
    return bufferSource(bytes);
  }

  find(name: string): ReturnType<typeof bufferSource> | undefined {
    const bytes = this.#stored.get(name);
    return bytes && bufferSource(bytes);
  }
}
