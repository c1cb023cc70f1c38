/** The frames of a profile one by one, inlined calls apart: what formats without locations are written from. */
import { frameNames } from '../model/frame-name.ts';
import type { FrameType, Profile } from '../model/profile.ts';

export interface NamedFrame {
  name: string;
  /** Source file, '' if unknown. */
  file: string;
  /** 0 if unknown. */
  line: number;
  column: number;
  /** Index into the profile's mappings. */
  mapping: number;
  frameType: FrameType;
  /** As the location's; 0 where the list is without addresses. */
  address: bigint;
  /** 0 for the outermost function of an inline chain; always 0 where the list is without addresses. */
  inlineDepth: number;
}

/** Interns frames: a location's are looked up once, whatever the number of stacks that it is in. */
export class FrameList {
  readonly frames: NamedFrame[] = [];
  readonly #profile: Profile;
  readonly #hasAddresses: boolean;
  readonly #indices = new Map<string, number>();
  readonly #byLocation: (readonly number[] | undefined)[] = [];

  /** @param hasAddresses frames that differ by address only, or by their place in an inline chain, are two */
  constructor(profile: Profile, hasAddresses = false) {
    this.#profile = profile;
    this.#hasAddresses = hasAddresses;
  }

  /** Indices into `frames`, the outermost first. */
  ofLocation(location: number): readonly number[] {
    this.#byLocation[location] ??= this.#read(location);
    return this.#byLocation[location];
  }

  /** Indices into `frames`, the root first. */
  ofStack(stack: number): number[] {
    const locations = this.#profile.stacks[stack]!;
    const frames: number[] = [];
    for (let i = locations.length - 1; i >= 0; i--) frames.push(...this.ofLocation(locations[i]!));
    return frames;
  }

  #read(index: number): number[] {
    const { lines, mapping, frameType, address } = this.#profile.locations[index]!;
    const place = { mapping, frameType, address: this.#hasAddresses ? address : 0n };
    const named = lines.filter(({ func }) => this.#profile.functions[func]!.name !== '').reverse();
    if (named.length === 0) {
      const name = frameNames(this.#profile, index)[0]!;
      return [this.#intern({ name, file: '', line: 0, column: 0, inlineDepth: 0, ...place })];
    }
    return named.map(({ func, line, column }, depth) => {
      const { name, filename: file } = this.#profile.functions[func]!;
      const inlineDepth = this.#hasAddresses ? depth : 0;
      return this.#intern({ name, file, line, column, inlineDepth, ...place });
    });
  }

  #intern(frame: NamedFrame): number {
    const { line, column, mapping, frameType, address, inlineDepth } = frame;
    const key = `${line}/${column}/${mapping}/${frameType}/${address}/${inlineDepth}/${frame.file}\0${frame.name}`;
    let index = this.#indices.get(key);
    if (index === undefined) {
      index = this.frames.push(frame) - 1;
      this.#indices.set(key, index);
    }
    return index;
  }
}
