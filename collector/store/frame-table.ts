import type { Frame } from './store.ts';

/** Rough costs in V8's heap: an object with four fields plus its map entry; a string's header plus its entry. */
const FRAME_BYTES = 160;
const STRING_BYTES = 80;
const PLACE_BYTES = 100;

/** Higher lines are left out: no file that a person wrote has so many. */
const MAX_LINES = 2 ** 20;

/** Ids of strings and places are far below these: a string takes some 100 bytes. */
const MAX_IDS = 2 ** 26;

/** What frames of a file, a mapping and a kind share. */
export type Place = Pick<Frame, 'file' | 'mapping' | 'kind'> & { binary: string };

/** Frames without duplicates, whose strings are kept once. Lines of a function are one frame, unless they are kept. */
export class FrameTable {
  readonly frames: Frame[] = [];
  readonly places: Place[] = [];
  /** Index into `places` of each frame. */
  readonly placeIds: number[] = [];
  bytes = 0;
  /** By name and place. Keys are numbers, which hash fast. */
  readonly #ids = new Map<number, number>();
  /** By the id of the function's first frame and the line, where lines are kept. */
  readonly #lines = new Map<number, number>();
  readonly #keepsLines: boolean;
  readonly #placeKeys = new Map<string, number>();
  readonly #strings = new Map<string, number>();
  readonly #stringList: string[] = [];
  /** Frames of one place often follow each other. */
  #lastPlace = { file: '', mapping: '', kind: '', binary: '', id: -1 };

  constructor({ keepsLines = false } = {}) {
    this.#keepsLines = keepsLines;
  }

  intern(frame: Frame): number {
    const { line = 0 } = frame;
    if (!this.#keepsLines || !(line > 0 && line < MAX_LINES)) return this.#internFunction(frame);
    const func = this.#internFunction(frame);
    const key = func * MAX_LINES + line;
    let id = this.#lines.get(key);
    if (id === undefined) {
      id = this.frames.push({ ...this.frames[func]!, line }) - 1;
      this.placeIds.push(this.placeIds[func]!);
      this.#lines.set(key, id);
      this.bytes += FRAME_BYTES;
    }
    return id;
  }

  #internFunction({ name, file, mapping, kind, binary = '' }: Frame): number {
    const nameId = this.#internString(name);
    const placeId = this.#place(file, mapping, kind, binary);
    const key = placeId * MAX_IDS + nameId;
    let id = this.#ids.get(key);
    if (id === undefined) {
      const place = this.places[placeId]!;
      const shared = { name: this.#stringList[nameId]!, file: place.file, mapping: place.mapping, kind };
      id = this.frames.push(binary === '' ? shared : { ...shared, binary: place.binary }) - 1;
      this.placeIds.push(placeId);
      this.#ids.set(key, id);
      this.bytes += FRAME_BYTES;
    }
    return id;
  }

  #place(file: string, mapping: string, kind: Frame['kind'], binary: string): number {
    const last = this.#lastPlace;
    const { file: lastFile, mapping: lastMapping, kind: lastKind, binary: lastBinary } = last;
    if (lastFile === file && lastMapping === mapping && lastKind === kind && lastBinary === binary)
      return last.id;
    const key = `${kind} ${this.#internString(file)} ${this.#internString(mapping)} ${binary}`;
    let id = this.#placeKeys.get(key);
    if (id === undefined) {
      const strings = this.#stringList;
      const shared = (text: string): string => strings[this.#internString(text)]!;
      id =
        this.places.push({ file: shared(file), mapping: shared(mapping), kind, binary: shared(binary) }) - 1;
      this.#placeKeys.set(key, id);
      this.bytes += PLACE_BYTES;
    }
    this.#lastPlace = { file, mapping, kind, binary, id };
    return id;
  }

  #internString(text: string): number {
    let id = this.#strings.get(text);
    if (id === undefined) {
      id = this.#stringList.length;
      this.#stringList.push(text);
      this.#strings.set(text, id);
      this.bytes += STRING_BYTES + 2 * text.length;
    }
    return id;
  }
}
