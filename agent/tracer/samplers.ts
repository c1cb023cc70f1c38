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
import { SamplerSlot } from './records.gen.ts';

/** Opens, but does not load, a sampler with these runtimes; maps that `share` has are taken from there. */
export type OpenSampler = (runtimes: readonly RuntimePlugin[], share: NativeBpfObject) => NativeBpfObject;

export interface SamplerObjects {
  open: OpenSampler;
  /** The program for stacks of which a part is not in memory; undefined: the kernel can't run it. */
  openDeferring: OpenSampler | undefined;
}

/** The kernel does not take some of the code: what that means, for people. */
export type OnRefused = (what: string, error: Error) => void;

export class Samplers {
  readonly #native: Native;
  readonly #slotsFd: number;
  readonly #objects: SamplerObjects;
  #current: NativeBpfObject;
  #runtimes: readonly RuntimePlugin[] = [];
  readonly #onRefused: OnRefused;
  /** Asked once; the answer would be the same. */
  readonly #refused = new Set<RuntimePlugin>();
  /** One change at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  #closed = false;
  readonly #deferring: NativeBpfObject[] = [];
  #defersNot = false;
  readonly stats = { runtimes: 0, refused: 0, deferring: 0 };

  /** Loads the first sampler; throws what the kernel says. `base` has all maps but those of runtimes. */
  constructor(native: Native, base: NativeBpfObject, objects: SamplerObjects, onRefused: OnRefused) {
    this.#native = native;
    this.#objects = objects;
    this.#onRefused = onRefused;
    this.#slotsFd = base.mapFd('samplers');
    this.#current = objects.open([], base);
    this.#current.loadSync();
    this.#putInPlace(SamplerSlot.SAMPLE, this.#current.programFd('sample'));
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
    for (const object of this.#deferring) object.close();
  }

  /** Whether asking for {@link deferStacks} may change anything. */
  get mayDefer(): boolean {
    return this.#objects.openDeferring !== undefined && this.#deferring.length === 0 && !this.#defersNot;
  }

  /** From now on stacks of which a part is not in memory wait for it; nothing happens where the kernel can't. */
  deferStacks(): Promise<void> {
    const added = this.#changes.then(() => (this.mayDefer ? this.#defer() : undefined));
    this.#changes = added;
    return added;
  }

  /** Loads the program for the present runtimes. Older ones stay: threads may still be on their way to them. */
  async #defer(): Promise<void> {
    if (this.#closed || !this.#objects.openDeferring) return;
    let object: NativeBpfObject | undefined;
    try {
      object = this.#objects.openDeferring(this.#runtimes, this.#current);
      await object.load();
      this.#putInPlace(SamplerSlot.DEFER, object.programFd('defer'));
      this.#deferring.push(object);
      this.stats.deferring = 1;
    } catch (error) {
      object?.close();
      this.#defersNot = true;
      this.stats.refused++;
      this.#onRefused('stacks will be cut where their memory is not resident', error as Error);
    }
  }

  async #widen(plugin: RuntimePlugin): Promise<boolean> {
    if (this.#runtimes.includes(plugin)) return true;
    if (this.#closed || this.#refused.has(plugin)) return false;
    const runtimes = [...this.#runtimes, plugin];
    const before = this.#current;
    let wider: NativeBpfObject | undefined;
    try {
      wider = this.#objects.open(runtimes, before);
      await wider.load();
      this.#putInPlace(SamplerSlot.SAMPLE, wider.programFd('sample'));
    } catch (error) {
      wider?.close();
      this.#refused.add(plugin);
      this.stats.refused++;
      this.#onRefused(`frames of ${plugin.name} will be missing from stacks`, error as Error);
      return false;
    }
    this.#current = wider;
    this.#runtimes = runtimes;
    this.stats.runtimes++;
    if (this.#deferring.length > 0) await this.#defer();
    before.close();
    return true;
  }

  #putInPlace(slot: number, programFd: number): void {
    const [key, program] = [Buffer.alloc(4), Buffer.alloc(4)];
    key.writeUInt32LE(slot);
    program.writeUInt32LE(programFd);
    this.#native.mapUpdate(this.#slotsFd, key, program, 0);
  }
}
