import type { Frame } from './store.ts';

/** Rough costs in V8's heap: an object with four fields plus its map entry; a string's header plus its entry. */
const FRAME_BYTES = 160;
const STRING_BYTES = 80;
const PLACE_BYTES = 100;

/** Higher lines are left out: no file that a person wrote has so many. */
const MAX_LINES = 2 ** 20;

/** Ids of strings and places are far below these: a string takes some 100 bytes. */
const MAX_IDS = 2 ** 26;

/** Frames without duplicates, whose strings are kept once. Lines of a function are one frame, unless they are kept. */
export class FrameTable {
  readonly frames: Frame[] = [];
  bytes = 0;
  /** By name and place: what frames of a file, a mapping and a kind share. Keys are numbers, which hash fast. */
  readonly #ids = new Map<number, number>();
  /** By the id of the function's first frame and the line, where lines are kept. */
  readonly #lines = new Map<number, number>();
  readonly #keepsLines: boolean;
  readonly #places = new Map<string, number>();
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
    const key = this.#internFunction(frame) * MAX_LINES + line;
    let id = this.#lines.get(key);
    if (id === undefined) {
      id = this.frames.push({ ...this.frames[Math.floor(key / MAX_LINES)]!, line }) - 1;
      this.#lines.set(key, id);
      this.bytes += FRAME_BYTES;
    }
    return id;
  }

  #internFunction({ name, file, mapping, kind, binary = '' }: Frame): number {
    const nameId = this.#internString(name);
    const key = this.#place(file, mapping, kind, binary) * MAX_IDS + nameId;
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.frames.length;
      const strings = this.#stringList;
      this.frames.push({
        name: strings[nameId]!,
        file: strings[this.#internString(file)]!,
        mapping: strings[this.#internString(mapping)]!,
        kind,
        ...(binary !== '' && { binary: strings[this.#internString(binary)]! }),
      });
      this.#ids.set(key, id);
      this.bytes += FRAME_BYTES;
    }
    return id;
  }

  #place(file: string, mapping: string, kind: string, binary: string): number {
    const last = this.#lastPlace;
    const { file: lastFile, mapping: lastMapping, kind: lastKind, binary: lastBinary } = last;
    if (lastFile === file && lastMapping === mapping && lastKind === kind && lastBinary === binary)
      return last.id;
    const key = `${kind} ${this.#internString(file)} ${this.#internString(mapping)} ${binary}`;
    let id = this.#places.get(key);
    if (id === undefined) {
      id = this.#places.size;
      this.#places.set(key, id);
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
