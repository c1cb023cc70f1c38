/** The frames of a profile one by one, inlined calls apart: what formats without locations are written from. */
import { frameNames } from './frame-name.ts';
import type { FrameType, Profile } from './profile.ts';

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
}

/** Interns frames: a location's are looked up once, whatever the number of stacks that it is in. */
export class FrameList {
  readonly frames: NamedFrame[] = [];
  readonly #profile: Profile;
  readonly #indices = new Map<string, number>();
  readonly #byLocation: (readonly number[] | undefined)[] = [];

  constructor(profile: Profile) {
    this.#profile = profile;
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
    const { lines, mapping, frameType } = this.#profile.locations[index]!;
    const named = lines.filter(({ func }) => this.#profile.functions[func]!.name !== '');
    if (named.length === 0) {
      const name = frameNames(this.#profile, index)[0]!;
      return [this.#intern({ name, file: '', line: 0, column: 0, mapping, frameType })];
    }
    return named
      .map(({ func, line, column }) => {
        const { name, filename } = this.#profile.functions[func]!;
        return this.#intern({ name, file: filename, line, column, mapping, frameType });
      })
      .reverse();
  }

  #intern(frame: NamedFrame): number {
    const key = `${frame.line}/${frame.column}/${frame.mapping}/${frame.frameType}/${frame.file}\0${frame.name}`;
    let index = this.#indices.get(key);
    if (index === undefined) {
      index = this.frames.push(frame) - 1;
      this.#indices.set(key, index);
    }
    return index;
  }
}
