import type { Frame } from './store.ts';

/** Rough costs in V8's heap: an object with four fields plus its map entry; a string's header plus its entry. */
const FRAME_BYTES = 160;
const STRING_BYTES = 80;

/** Frames without duplicates, whose strings are kept once. */
export class FrameTable {
  readonly frames: Frame[] = [];
  bytes = 0;
  readonly #ids = new Map<string, number>();
  readonly #strings = new Map<string, number>();
  readonly #stringList: string[] = [];

  intern(frame: Frame): number {
    const name = this.#internString(frame.name);
    const file = this.#internString(frame.file);
    const mapping = this.#internString(frame.mapping);
    const key = `${frame.kind} ${name} ${file} ${mapping}`;
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.frames.length;
      const strings = this.#stringList;
      this.frames.push({
        name: strings[name]!,
        file: strings[file]!,
        mapping: strings[mapping]!,
        kind: frame.kind,
      });
      this.#ids.set(key, id);
      this.bytes += FRAME_BYTES;
    }
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
