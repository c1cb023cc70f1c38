/**
 * Tables of a profile that say what frames are, kept from one interval to the next: nearly all frames come again.
 * Entries are only added; what a profile does not refer to, its writers leave out.
 */

import { intern } from '../../common/profile/model/intern.ts';
import { emptyProfile, type Func, type Location, type Mapping } from '../../common/profile/model/profile.ts';
import { fullAddress } from '../symbolizer/kernel/kernel.ts';
import type { Frame, FrameLine } from './frame.ts';

/** Past this many all are made anew; many frames share one. */
const DEFAULT_MAX_LOCATIONS = 12_288;

const NONE = -1;
const FIRST_ROOM = 1024;

export class FrameTables {
  readonly mappings: Mapping[];
  readonly functions: Func[];
  readonly locations: Location[];
  /** By the number of the frame. */
  #byFrame = new Int32Array(FIRST_ROOM).fill(NONE);
  /** Weak: those of files that can't be opened, and of BPF code, are other objects each time. */
  readonly #mappings = new WeakMap<Mapping, number>();
  readonly #mappingsByContent = new Map<string, number>();
  readonly #newestByName = new Map<string, number>();
  /** By function: another one of the same name. */
  readonly #olderOfName: number[] = [NONE];
  /** Mapping → address → location: copies of one file have frames of their own, but one location. */
  readonly #byPlace = new Map<number, Map<number, number>>();
  /** Locations without a place, by a hash of what they say. */
  readonly #newestByHash = new Map<number, number>();
  /** By location: another one of the same hash. */
  readonly #olderOfHash: number[] = [];

  readonly #maxLocations: number;

  constructor(maxLocations = DEFAULT_MAX_LOCATIONS) {
    this.#maxLocations = maxLocations;
    ({ mappings: this.mappings, functions: this.functions, locations: this.locations } = emptyProfile());
  }

  get isFull(): boolean {
    return this.locations.length > this.#maxLocations;
  }

  /** Index of the frame's location, as the frame is now. */
  locationOf(frame: Frame): number {
    const { number } = frame;
    if (number === undefined) return this.#find(frame);
    if (number >= this.#byFrame.length) this.#grow(number);
    let location = frame.isChanged ? NONE : this.#byFrame[number]!;
    if (location !== NONE) return location;
    location = this.#find(frame);
    this.#byFrame[number] = location;
    frame.isChanged = false;
    return location;
  }

  #grow(number: number): void {
    const larger = new Int32Array(Math.max(number + 1, this.#byFrame.length * 2)).fill(NONE);
    larger.set(this.#byFrame);
    this.#byFrame = larger;
  }

  #find(frame: Frame): number {
    const index = this.#mapping(frame.mapping);
    return hasPlace(frame) ? this.#placed(frame, index) : this.#unplaced(frame, index);
  }

  #placed(frame: Frame, mapping: number): number {
    let places = this.#byPlace.get(mapping);
    if (!places) {
      places = new Map();
      this.#byPlace.set(mapping, places);
    }
    const known = places.get(frame.address);
    if (known !== undefined && saysTheSame(this.locations[known]!, this.functions, frame)) return known;
    const index = this.#add(frame, mapping);
    places.set(frame.address, index);
    return index;
  }

  /** Interpreted frames and markers have no place, only what they say; JIT code has another one in each process. */
  #unplaced(frame: Frame, mapping: number): number {
    const location = this.#locationOf(frame, mapping);
    const hash = hashOf(location, frame.address);
    const newest = this.#newestByHash.get(hash) ?? NONE;
    for (let index = newest; index !== NONE; index = this.#olderOfHash[index]!)
      if (areEqual(this.locations[index]!, location)) return index;
    const index = this.locations.push(location) - 1;
    this.#olderOfHash[index] = newest;
    this.#newestByHash.set(hash, index);
    return index;
  }

  #add(frame: Frame, mapping: number): number {
    const index = this.locations.push(this.#locationOf(frame, mapping)) - 1;
    this.#olderOfHash[index] = NONE;
    return index;
  }

  #locationOf(frame: Frame, mapping: number): Location {
    const { address, frameType, lines, generated, functionStart } = frame;
    const location: Location = {
      mapping,
      address: fullAddress(frame.mapping, address),
      frameType,
      lines: lines.map((line) => ({ func: this.#function(line), line: line.line, column: line.column })),
    };
    if (generated) return { ...location, generated };
    return functionStart && lines.length === 0 ? { ...location, functionStart } : location;
  }

  #mapping(mapping: Mapping): number {
    const known = this.#mappings.get(mapping);
    if (known !== undefined) return known;
    const { filename, fileId, gnuBuildId, memoryStart, memoryLimit, fileOffset } = mapping;
    const content = `${filename}\0${fileId}\0${gnuBuildId}\0${memoryStart}/${memoryLimit}/${fileOffset}`;
    const isNone = filename === '' && fileId === '';
    const index = isNone ? 0 : intern(this.#mappingsByContent, content, this.mappings, () => mapping);
    this.#mappings.set(mapping, index);
    return index;
  }

  #function({ function: name, systemName, file: filename, startLine = 0 }: FrameLine): number {
    const newest = this.#newestByName.get(name) ?? NONE;
    for (let index = newest; index !== NONE; index = this.#olderOfName[index]!) {
      const known = this.functions[index]!;
      if (known.filename === filename && known.systemName === systemName && known.startLine === startLine)
        return index;
    }
    const index = this.functions.push({ name, systemName, filename, startLine }) - 1;
    this.#olderOfName[index] = newest;
    this.#newestByName.set(name, index);
    return index;
  }
}

/** Does its address mean the same wherever it is sampled? It does in files, and says nothing more where it has no name. */
const hasPlace = ({ mapping, lines }: Frame): boolean =>
  mapping.fileId !== '' || (mapping.filename !== '' && lines.length === 0);

/** Names of one place grow: from none to a function, to inlined ones with lines. */
const saysTheSame = (location: Location, functions: readonly Func[], { lines, functionStart = 0 }: Frame) =>
  location.lines.length === lines.length &&
  (lines.length > 0 || (location.functionStart ?? 0) === functionStart) &&
  location.lines.every(({ func, line, column }, i) => {
    const other = lines[i]!;
    const { name, filename } = functions[func]!;
    return (
      line === other.line && column === other.column && name === other.function && filename === other.file
    );
  });

function hashOf({ mapping, lines }: Location, address: number): number {
  let hash = Math.imul(address | 0, 31) + mapping;
  for (const { func, line, column } of lines)
    hash = Math.imul(Math.imul(Math.imul(hash, 31) + func, 31) + line, 31) + column;
  return hash | 0;
}

const areEqual = (a: Location, b: Location): boolean =>
  a.mapping === b.mapping &&
  a.frameType === b.frameType &&
  a.address === b.address &&
  a.generated === b.generated &&
  a.functionStart === b.functionStart &&
  a.lines.length === b.lines.length &&
  a.lines.every((line, i) => {
    const other = b.lines[i]!;
    return line.func === other.func && line.line === other.line && line.column === other.column;
  });
