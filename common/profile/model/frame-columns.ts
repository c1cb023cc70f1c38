/**
 * Functions and locations of a profile in columns, and their strings by id: a stack has thirty frames, and an object for each
 * of what they are made of would cost more than all else that is done with it.
 */
import type { FrameType, Func, Line, Location, Profile } from './profile.ts';

/** Strings by id; 0 is ''. */
export interface StringsById {
  /** Ids below {@link LOOSE_STRINGS} mean the same as long as this does not change. */
  readonly generation: number;
  string(id: number): string;
}

/** Ids from here on mean something in one request only. */
export const LOOSE_STRINGS = 2 ** 24;

/** Index 0 is the zero value, as in {@link Profile}. */
export class FrameColumns {
  readonly strings: StringsById;
  /** Of functions; strings as ids. */
  readonly names = [0];
  readonly systemNames = [0];
  readonly files = [0];
  readonly startLines = [0];
  /** Of locations; addresses as u32 pairs. */
  readonly mappings = [0];
  readonly addressesLow = [0];
  readonly addressesHigh = [0];
  readonly types: FrameType[] = [''];
  /** Where the lines of a location begin; those of the next begin where they end. */
  readonly lineStarts = [0, 0];
  /** Of lines. */
  readonly lineFunctions: number[] = [];
  readonly lineNumbers: number[] = [];
  readonly lineColumns: number[] = [];
  /** By location, where there is any. */
  readonly generated = new Map<number, string>();
  readonly functionStarts = new Map<number, number>();

  constructor(strings: StringsById) {
    this.strings = strings;
  }

  get locationCount(): number {
    return this.mappings.length;
  }

  get functionCount(): number {
    return this.names.length;
  }

  /** Its index. */
  addFunction(name: number, systemName: number, file: number, startLine: number): number {
    this.names.push(name);
    this.systemNames.push(systemName);
    this.files.push(file);
    return this.startLines.push(startLine) - 1;
  }

  /** A line of the location that is added next. */
  addLine(func: number, line: number, column: number): void {
    this.lineFunctions.push(func);
    this.lineNumbers.push(line);
    this.lineColumns.push(column);
  }

  /** Its index. */
  addLocation(mapping: number, addressLow: number, addressHigh: number, type: FrameType): number {
    this.addressesLow.push(addressLow);
    this.addressesHigh.push(addressHigh);
    this.types.push(type);
    this.lineStarts.push(this.lineFunctions.length);
    return this.mappings.push(mapping) - 1;
  }

  /** Lines of these locations beyond one of each. */
  inlinedAt(locations: Uint32Array): number {
    let inlined = 0;
    for (const index of locations)
      inlined += Math.max(0, this.lineStarts[index + 1]! - this.lineStarts[index]! - 1);
    return inlined;
  }

  func(index: number): Func {
    const { strings } = this;
    return {
      name: strings.string(this.names[index]!),
      systemName: strings.string(this.systemNames[index]!),
      filename: strings.string(this.files[index]!),
      startLine: this.startLines[index]!,
    };
  }

  location(index: number): Location {
    const lines: Line[] = [];
    for (let i = this.lineStarts[index]!; i < this.lineStarts[index + 1]!; i++)
      lines.push({
        func: this.lineFunctions[i]!,
        line: this.lineNumbers[i]!,
        column: this.lineColumns[i]!,
      });
    const address = (BigInt(this.addressesHigh[index]!) << 32n) | BigInt(this.addressesLow[index]!);
    const location = { mapping: this.mappings[index]!, address, frameType: this.types[index]!, lines };
    const [generated, functionStart] = [this.generated.get(index), this.functionStarts.get(index)];
    return {
      ...location,
      ...(generated !== undefined && { generated }),
      ...(functionStart !== undefined && { functionStart }),
    };
  }
}

/** A profile whose functions and locations are columns. */
export type ColumnProfile = Omit<Profile, 'functions' | 'locations'> & { frames: FrameColumns };

export function wholeProfile({ frames, ...rest }: ColumnProfile): Profile {
  return {
    ...rest,
    functions: frames.names.map((_, index) => frames.func(index)),
    locations: frames.mappings.map((_, index) => frames.location(index)),
  };
}

export function columnProfile({ functions, locations, ...rest }: Profile): ColumnProfile {
  const strings = new StringList();
  const frames = new FrameColumns(strings);
  for (const { name, systemName, filename, startLine } of functions.slice(1))
    frames.addFunction(strings.idOf(name), strings.idOf(systemName), strings.idOf(filename), startLine);
  for (const { mapping, address, frameType, lines, generated, functionStart } of locations.slice(1)) {
    for (const { func, line, column } of lines) frames.addLine(func, line, column);
    const low = Number(address & 0xffff_ffffn);
    const index = frames.addLocation(mapping, low, Number(address >> 32n), frameType);
    if (generated !== undefined) frames.generated.set(index, generated);
    if (functionStart !== undefined) frames.functionStarts.set(index, functionStart);
  }
  return { ...rest, frames };
}

class StringList implements StringsById {
  readonly generation = 0;
  readonly #strings = [''];
  readonly #ids = new Map([['', 0]]);

  idOf(text: string): number {
    let id = this.#ids.get(text);
    if (id === undefined) {
      id = this.#strings.push(text) - 1;
      this.#ids.set(text, id);
    }
    return id;
  }

  string(id: number): string {
    return this.#strings[id]!;
  }
}
