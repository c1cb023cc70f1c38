import { PairTable } from './pair-table.ts';
import type { Frame } from './store.ts';

/** Rough costs in V8's heap: an object with four fields; a string's header plus its map entry. */
const FRAME_BYTES = 96;
const STRING_BYTES = 80;
const PLACE_BYTES = 100;

/** Higher lines are left out: no file that a person wrote has so many. */
const MAX_LINES = 2 ** 20;

/** What frames of a file, a mapping and a kind share. */
export type Place = Pick<Frame, 'file' | 'mapping' | 'kind'> & { binary: string };

/** Frames without duplicates, whose strings are kept once. Lines of a function are one frame, unless they are kept. */
export class FrameTable {
  readonly frames: Frame[] = [];
  readonly places: Place[] = [];
  /** Index into `places` of each frame. */
  readonly placeIds: number[] = [];
  #textBytes = 0;
  /** By place and name. */
  readonly #ids = new PairTable();
  /** By the id of the function's first frame and the line, where lines are kept. */
  readonly #lines = new PairTable();
  readonly #keepsLines: boolean;
  /** By the id of a file and a mapping, and by that of a kind and a binary: what both ids give is a place. */
  readonly #files = new PairTable();
  readonly #kinds = new PairTable();
  readonly #placeIds = new PairTable();
  #pairs = 0;
  readonly #strings = new Map<string, number>();
  readonly #stringList: string[] = [];
  /** Frames of one place often follow each other. */
  #lastPlace = { file: '', mapping: '', kind: '', binary: '', id: -1 };

  constructor({ keepsLines = false } = {}) {
    this.#keepsLines = keepsLines;
  }

  get bytes(): number {
    return this.#textBytes + this.#ids.bytes + this.#lines.bytes + this.#placeIds.bytes;
  }

  intern(frame: Frame): number {
    return this.internLine(this.#internFunction(frame), frame.line ?? 0);
  }

  /** The frame of a line, from 1, of a function: `func` is what `intern` gave for it without a line. */
  internLine(func: number, line: number): number {
    if (!this.#keepsLines || !(line > 0 && line < MAX_LINES)) return func;
    let id = this.#lines.get(func, line);
    if (id === undefined) {
      id = this.frames.push({ ...this.frames[func]!, line }) - 1;
      this.placeIds.push(this.placeIds[func]!);
      this.#lines.set(func, line, id);
      this.#textBytes += FRAME_BYTES;
    }
    return id;
  }

  #internFunction({ name, file, mapping, kind, binary = '' }: Frame): number {
    const nameId = this.#internString(name);
    const placeId = this.#place(file, mapping, kind, binary);
    let id = this.#ids.get(placeId, nameId);
    if (id === undefined) {
      const place = this.places[placeId]!;
      const shared = { name: this.#stringList[nameId]!, file: place.file, mapping: place.mapping, kind };
      id = this.frames.push(binary === '' ? shared : { ...shared, binary: place.binary }) - 1;
      this.placeIds.push(placeId);
      this.#ids.set(placeId, nameId, id);
      this.#textBytes += FRAME_BYTES;
    }
    return id;
  }

  #place(file: string, mapping: string, kind: Frame['kind'], binary: string): number {
    const last = this.#lastPlace;
    const { file: lastFile, mapping: lastMapping, kind: lastKind, binary: lastBinary } = last;
    if (lastFile === file && lastMapping === mapping && lastKind === kind && lastBinary === binary)
      return last.id;
    const ofFile = this.#pairId(this.#files, file, mapping);
    const ofKind = this.#pairId(this.#kinds, kind, binary);
    let id = this.#placeIds.get(ofFile, ofKind);
    if (id === undefined) {
      const strings = this.#stringList;
      const shared = (text: string): string => strings[this.#internString(text)]!;
      id =
        this.places.push({ file: shared(file), mapping: shared(mapping), kind, binary: shared(binary) }) - 1;
      this.#placeIds.set(ofFile, ofKind, id);
      this.#textBytes += PLACE_BYTES;
    }
    this.#lastPlace = { file, mapping, kind, binary, id };
    return id;
  }

  #pairId(table: PairTable, a: string, b: string): number {
    const [first, second] = [this.#internString(a), this.#internString(b)];
    let id = table.get(first, second);
    if (id === undefined) {
      id = this.#pairs++;
      table.set(first, second, id);
    }
    return id;
  }

  #internString(text: string): number {
    let id = this.#strings.get(text);
    if (id === undefined) {
      id = this.#stringList.length;
      this.#stringList.push(text);
      this.#strings.set(text, id);
      this.#textBytes += STRING_BYTES + 2 * text.length;
    }
    return id;
  }
}
