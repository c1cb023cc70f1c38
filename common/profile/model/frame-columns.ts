/**
 * Functions and locations of a profile in columns, and their texts by number: a stack has thirty frames, and an object for each
 * of what they are made of would cost more than all else that is done with it.
 */
import type { FrameType, Func, Line, Location, Profile } from './profile.ts';

/** Texts by id; 0 is ''. */
export interface StringsById {
  /** Ids below {@link LOOSE_STRINGS} mean the same as long as this does not change. */
  readonly generation: number;
  text(id: number): string;
}

/** Ids from here on mean something in one request only. */
export const LOOSE_STRINGS = 2 ** 24;

/** Index 0 is the zero value, as in {@link Profile}. */
export class FrameColumns {
  readonly texts: StringsById;
  /** Of functions; texts as ids. */
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

  constructor(texts: StringsById) {
    this.texts = texts;
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

  func(index: number): Func {
    const { texts } = this;
    return {
      name: texts.text(this.names[index]!),
      systemName: texts.text(this.systemNames[index]!),
      filename: texts.text(this.files[index]!),
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
    const generated = this.generated.get(index);
    return generated === undefined ? location : { ...location, generated };
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
  const texts = new StringList();
  const frames = new FrameColumns(texts);
  for (const { name, systemName, filename, startLine } of functions.slice(1))
    frames.addFunction(texts.idOf(name), texts.idOf(systemName), texts.idOf(filename), startLine);
  for (const { mapping, address, frameType, lines, generated } of locations.slice(1)) {
    for (const { func, line, column } of lines) frames.addLine(func, line, column);
    const low = Number(address & 0xffff_ffffn);
    const index = frames.addLocation(mapping, low, Number(address >> 32n), frameType);
    if (generated !== undefined) frames.generated.set(index, generated);
  }
  return { ...rest, frames };
}

class StringList implements StringsById {
  readonly generation = 0;
  readonly #texts = [''];
  readonly #ids = new Map([['', 0]]);

  idOf(text: string): number {
    let id = this.#ids.get(text);
    if (id === undefined) {
      id = this.#texts.push(text) - 1;
      this.#ids.set(text, id);
    }
    return id;
  }

  text(id: number): string {
    return this.#texts[id]!;
  }
}
