/**
 * The sampler, which is loaded without any runtime, and again with one more each time that one is met on this machine:
 * a machine pays for no code and no map of a runtime that it does not run.
 *
 * The events run a program of two lines, `tick`, which jumps to whatever stands in slot 0 of a program array. A wider
 * sampler is loaded and verified on another thread, sharing all maps, and then put into that slot: each tick runs
 * either the old or the new one, to its end. docs/decisions/runtimes-on-demand.md says what else was tried.
 */
import type { RuntimePlugin } from '../interpreters/contract.ts';
import type { Native, NativeBpfObject } from './native.ts';

/** Opens, but does not load, a sampler with these runtimes; maps that `share` has are taken from there. */
export type OpenSampler = (runtimes: readonly RuntimePlugin[], share: NativeBpfObject) => NativeBpfObject;

/** The kernel does not take the runtime's code: its frames will be missing. */
export type OnRefused = (plugin: RuntimePlugin, error: Error) => void;

export class Samplers {
  readonly #native: Native;
  readonly #slotsFd: number;
  readonly #open: OpenSampler;
  #current: NativeBpfObject;
  #runtimes: readonly RuntimePlugin[] = [];
  readonly #onRefused: OnRefused;
  /** Asked once; the answer would be the same. */
  readonly #refused = new Set<RuntimePlugin>();
  /** One change at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  #closed = false;
  readonly stats = { runtimes: 0, refused: 0 };

  /** Loads the first sampler; throws what the kernel says. `base` has all maps but those of runtimes. */
  constructor(native: Native, base: NativeBpfObject, open: OpenSampler, onRefused: OnRefused) {
    this.#native = native;
    this.#open = open;
    this.#onRefused = onRefused;
    this.#slotsFd = base.mapFd('samplers');
    this.#current = open([], base);
    this.#current.loadSync();
    this.#putInPlace(this.#current);
  }

  /** The map of a runtime that is part of the sampler, valid until the next await; undefined if it is not. */
  mapFd(plugin: RuntimePlugin): number | undefined {
    return this.#runtimes.includes(plugin) ? this.#current.mapFd(plugin.maps[0]) : undefined;
  }

  /** Makes the runtime part of the sampler; false if the kernel refuses it. */
  add(plugin: RuntimePlugin): Promise<boolean> {
    const added = this.#changes.then(() => this.#widen(plugin));
    this.#changes = added;
    return added;
  }

  /** Waits for a change that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#changes;
    this.#current.close();
  }

  async #widen(plugin: RuntimePlugin): Promise<boolean> {
    if (this.#runtimes.includes(plugin)) return true;
    if (this.#closed || this.#refused.has(plugin)) return false;
    const runtimes = [...this.#runtimes, plugin];
    const before = this.#current;
    let wider: NativeBpfObject | undefined;
    try {
      wider = this.#open(runtimes, before);
      await wider.load();
      this.#putInPlace(wider);
    } catch (error) {
      wider?.close();
      this.#refused.add(plugin);
      this.stats.refused++;
      this.#onRefused(plugin, error as Error);
      return false;
    }
    this.#current = wider;
    this.#runtimes = runtimes;
    this.stats.runtimes++;
    before.close();
    return true;
  }

  #putInPlace(sampler: NativeBpfObject): void {
    const [slot, program] = [Buffer.alloc(4), Buffer.alloc(4)];
    program.writeUInt32LE(sampler.programFd('sample'));
    this.#native.mapUpdate(this.#slotsFd, slot, program, 0);
  }
}
