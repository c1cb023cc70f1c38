/**
 * The sampler, which is loaded without any runtime, and again with one more each time that one is detected on this machine:
 * a machine pays for no code and no map of a runtime that it does not run.
 *
 * The events run a program of two lines, `tick`, which jumps to whatever stands in slot 0 of a program array. A wider
 * sampler is loaded and verified on another thread, sharing all maps, and then put into that slot: each tick runs
 * either the old or the new one, to its end. docs/decisions/runtimes/loading-on-demand.md says what else was tried.
 */

import type { Native, NativeBpfObject } from '../base/native.ts';
import { SamplerSlot } from '../records/records.gen.ts';
import { putInSlot } from './program-slots.ts';
import { missingWithout, type SamplerPart } from './sampler-part.ts';

/** Opens, but does not load, a sampler with these runtimes; maps that `share` has are taken from there. */
export type OpenSampler = (runtimes: readonly SamplerPart[], share: NativeBpfObject) => NativeBpfObject;

const PROCESS_RUNTIMES_MAP = 'process_runtimes';
/** Made with the first runtime. */
export const MAPS_OF_RUNTIMES: readonly string[] = [PROCESS_RUNTIMES_MAP, 'functions'];

export interface SamplerObjects {
  open: OpenSampler;
  /** The program for stacks of which a part is not in memory; undefined: the kernel can't run it. */
  openDeferring: OpenSampler | undefined;
}

/** Programs of another source of samples, which unwind through the same runtimes. */
export interface Follower {
  /** Takes stacks with these runtimes from now on; maps that `share` has are taken from there. Rejects as the kernel says. */
  follow(runtimes: readonly SamplerPart[], share: NativeBpfObject): Promise<void>;
}

/** The kernel does not take some of the code: what that means, for people. */
export type OnRefused = (what: string, error: Error) => void;

export class Samplers {
  readonly #native: Native;
  readonly #slotsFd: number;
  readonly #objects: SamplerObjects;
  #current: NativeBpfObject;
  #runtimes: readonly SamplerPart[] = [];
  readonly #onRefused: OnRefused;
  /** Asked once; the answer would be the same. */
  readonly #refused = new Set<SamplerPart>();
  /** For the next change. */
  readonly #wanted = new Set<SamplerPart>();
  /** One change at a time. */
  #changes: Promise<unknown> = Promise.resolve();
  #closed = false;
  readonly #deferring: NativeBpfObject[] = [];
  #defersNot = false;
  readonly #followers: Follower[] = [];
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
  mapFd(plugin: SamplerPart): number | undefined {
    return this.#has(plugin) ? this.#current.mapFd(plugin.map) : undefined;
  }

  /** The map of which runtimes a process has, valid until the next await; undefined while no runtime is loaded. */
  processRuntimesFd(): number | undefined {
    const isLoaded = !this.#closed && this.#runtimes.length > 0;
    return isLoaded ? this.#current.mapFd(PROCESS_RUNTIMES_MAP) : undefined;
  }

  /**
   * Makes the runtime part of the sampler; false if the kernel refuses it. The whole sampler is verified for it, so those
   * that are asked for while another change is under way come together.
   */
  async add(plugin: SamplerPart): Promise<boolean> {
    this.#wanted.add(plugin);
    await this.#change(() => this.#widen());
    return this.#has(plugin);
  }

  #has(plugin: SamplerPart): boolean {
    return !this.#closed && this.#runtimes.includes(plugin);
  }

  /** The next change waits for this, and with it all runtimes that are asked for until then. */
  async gather(until: Promise<unknown>): Promise<void> {
    await this.#change(() => until);
  }

  /** From now on the follower has the runtimes of the sampler; rejects where the kernel does not take it. */
  async addFollower(follower: Follower): Promise<void> {
    let error: unknown;
    await this.#change(async () => {
      try {
        await follower.follow(this.#runtimes, this.#current);
        this.#followers.push(follower);
      } catch (reason) {
        error = reason;
      }
    });
    if (error) throw error;
  }

  #change<T>(make: () => Promise<T> | undefined): Promise<T | undefined> {
    const made = this.#changes.then(make);
    this.#changes = made;
    return made;
  }

  /** Waits for a change that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#changes;
    this.#current.close();
    for (const object of this.#deferring) object.close();
  }

  /** False once {@link deferStacks} can change nothing. */
  get mayDefer(): boolean {
    return this.#objects.openDeferring !== undefined && this.#deferring.length === 0 && !this.#defersNot;
  }

  /** From now on stacks of which a part is not in memory wait for it; nothing happens where the kernel can't. */
  deferStacks(): Promise<void> {
    return this.#change(() => (this.mayDefer ? this.#defer() : undefined));
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

  async #widen(): Promise<void> {
    const isNew = (plugin: SamplerPart): boolean =>
      !this.#runtimes.includes(plugin) && !this.#refused.has(plugin);
    const wanted = [...this.#wanted].filter(isNew);
    this.#wanted.clear();
    if (wanted.length > 1 && (await this.#load(wanted)) === undefined) return;
    // which of them the kernel refuses
    for (const plugin of wanted.filter(isNew)) {
      const error = await this.#load([plugin]);
      if (!error) continue;
      this.#refused.add(plugin);
      this.stats.refused++;
      this.#onRefused(`${missingWithout(plugin)} will be missing from samples`, error);
    }
  }

  /** Lets a sampler that has these as well take over; the kernel's answer where it does not take it. */
  async #load(added: readonly SamplerPart[]): Promise<Error | undefined> {
    if (this.#closed) return undefined;
    const runtimes = [...this.#runtimes, ...added];
    const before = this.#current;
    let wider: NativeBpfObject | undefined;
    try {
      wider = this.#objects.open(runtimes, before);
      await wider.load();
      this.#putInPlace(SamplerSlot.SAMPLE, wider.programFd('sample'));
    } catch (error) {
      wider?.close();
      return error as Error;
    }
    this.#current = wider;
    this.#runtimes = runtimes;
    this.stats.runtimes += added.length;
    if (this.#deferring.length > 0) await this.#defer();
    await this.#widenFollowers(added);
    before.close();
    return undefined;
  }

  /** Where the kernel refuses, they go on with the runtimes that they have. */
  async #widenFollowers(added: readonly SamplerPart[]): Promise<void> {
    for (const follower of this.#followers) {
      try {
        await follower.follow(this.#runtimes, this.#current);
      } catch (error) {
        const what = added.map(missingWithout).join(' and ');
        this.stats.refused++;
        this.#onRefused(`${what} will be missing from samples of other events`, error as Error);
      }
    }
  }

  #putInPlace(slot: number, programFd: number): void {
    putInSlot(this.#native, this.#slotsFd, slot, programFd);
  }
}
