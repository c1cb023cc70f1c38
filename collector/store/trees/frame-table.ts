import { LOOSE_STRINGS, type StringsById } from '../../../common/profile/model/frame-columns.ts';
import type { Frame } from '../store.ts';
import { PairTable } from './pair-table.ts';

/** Rough costs in V8's heap: an object with four fields; a string's header plus its map entry. */
const FRAME_BYTES = 96;
const STRING_BYTES = 80;
const PLACE_BYTES = 100;

/** Higher lines are left out: no file that a person wrote has so many. */
export const MAX_LINES = 2 ** 20;

/** Fields that frames of many files share. */
interface Origin {
  mapping: string;
  kind: Frame['kind'];
  binary: string;
}

/** Fields that frames of a file, a mapping and a kind share. */
export type Place = Origin & Pick<Frame, 'file'>;

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
  /** By kind and binary; by what that gives and the mapping; by what that gives and the file. */
  readonly #kinds = new PairTable();
  readonly #originIds = new PairTable();
  readonly #placeIds = new PairTable();
  #kindCount = 0;
  readonly #origins: Origin[] = [];
  /** By origin and the lower half of an address. */
  readonly #addresses = new PairTable();
  readonly #strings = new Map<string, number>();
  readonly #stringList: string[] = [];
  /** Frames of one place often follow each other. */
  #lastPlace = { file: '', mapping: '', kind: '', binary: '', id: -1 };
  /** By id of a sender's string: id of the string here and 1. */
  #senderIds = new Int32Array(0);
  #sender: StringsById | undefined;
  #generation = 0;

  constructor({ keepsLines = false } = {}) {
    this.#keepsLines = keepsLines;
  }

  get bytes(): number {
    const { bytes } = this.#addresses;
    return this.#textBytes + this.#ids.bytes + this.#lines.bytes + this.#placeIds.bytes + bytes;
  }

  intern(frame: Frame): number {
    return this.internLine(this.#internFrame(frame), frame.line ?? 0);
  }

  /** The frame of a line, from 1, of a function: `func` is what `intern` or `internFunction` gave for it without a line. */
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

  /** Id of what frames of a mapping share. */
  origin(mapping: string, kind: Frame['kind'], binary: string): number {
    const ofKind = this.#internPair(this.#kinds, this.#internString(kind), this.#internString(binary), () => {
      return this.#kindCount++;
    });
    return this.#internPair(this.#originIds, ofKind, this.#internString(mapping), () => {
      this.#textBytes += PLACE_BYTES;
      return this.#origins.push({ mapping: this.#shared(mapping), kind, binary: this.#shared(binary) }) - 1;
    });
  }

  /** Id of a sender's string. */
  stringId(sender: StringsById, id: number): number {
    if (id >= LOOSE_STRINGS) return this.#internString(sender.string(id));
    if (sender !== this.#sender || sender.generation !== this.#generation) {
      this.forgetSender();
      this.#sender = sender;
      this.#generation = sender.generation;
    }
    const known = this.#senderIds[id];
    if (known !== undefined && known !== 0) return known - 1;
    if (known === undefined) this.#makeRoom(id);
    const own = this.#internString(sender.string(id));
    this.#senderIds[id] = own + 1;
    return own;
  }

  /** Gives back what only is there for more of the same sender's strings. */
  forgetSender(): void {
    this.#sender = undefined;
    this.#senderIds = new Int32Array(0);
  }

  /** The frame of a function without a line; name and file as ids of strings. */
  internFunction(origin: number, file: number, name: number): number {
    return this.#internAt(this.#internPlace(origin, file), name);
  }

  /** The frame of an address that nothing names. `low`: the lower half of an address without an upper one. */
  internAddress(origin: number, low: number, name: () => string): number {
    return this.#internPair(this.#addresses, origin, low, () =>
      this.internFunction(origin, this.#internString(''), this.#internString(name())),
    );
  }

  #internFrame({ name, file, mapping, kind, binary = '' }: Frame): number {
    const nameId = this.#internString(name);
    return this.#internAt(this.#place(file, mapping, kind, binary), nameId);
  }

  #internAt(placeId: number, nameId: number): number {
    const known = this.#ids.get(placeId, nameId);
    if (known !== undefined) return known;
    const { binary, ...place } = this.places[placeId]!;
    const shared = { name: this.#stringList[nameId]!, ...place };
    const id = this.frames.push(binary === '' ? shared : { ...shared, binary }) - 1;
    this.placeIds.push(placeId);
    this.#ids.set(placeId, nameId, id);
    this.#textBytes += FRAME_BYTES;
    return id;
  }

  #place(file: string, mapping: string, kind: Frame['kind'], binary: string): number {
    const last = this.#lastPlace;
    if (last.file === file && last.mapping === mapping && last.kind === kind && last.binary === binary)
      return last.id;
    const origin = this.origin(mapping, kind, binary);
    const id = this.#internPlace(origin, this.#internString(file));
    this.#lastPlace = { file, mapping, kind, binary, id };
    return id;
  }

  #internPlace(origin: number, file: number): number {
    return this.#internPair(this.#placeIds, origin, file, () => {
      this.#textBytes += PLACE_BYTES;
      return this.places.push({ file: this.#stringList[file]!, ...this.#origins[origin]! }) - 1;
    });
  }

  #internPair(table: PairTable, a: number, b: number, make: () => number): number {
    const known = table.get(a, b);
    if (known !== undefined) return known;
    const id = make();
    table.set(a, b, id);
    return id;
  }

  #makeRoom(id: number): void {
    const larger = new Int32Array(2 ** Math.ceil(Math.log2(id + 256)));
    larger.set(this.#senderIds);
    this.#senderIds = larger;
  }

  #shared(text: string): string {
    return this.#stringList[this.#internString(text)]!;
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
