/** Perl's symbols, packages, names and statements, read out of a live process. */
import type { ProcessMemory } from '../contract.ts';
import { AUX, FLAG, GP_EGV, HEK, OP, type PerlLayout, SV, TYPE, XPVCV, XPVGV, XPVHV } from './layout.ts';

const MAX_ADDRESS = 2 ** 48;
const MAX_NAME = 512;
const MAX_FILE = 4096;
/** A package may be known by so many names; only the first is wanted. */
const MAX_BUCKETS = 2 ** 32;
const IS_UTF8 = 1;

export interface Sv {
  body: number;
  flags: number;
  value: number;
}

/** What a function is called. */
export interface PerlName {
  /** '' where it has none. */
  stash: string;
  name: string;
}

export interface Statement {
  line: number;
  /** '' where it can't be read. */
  file: string;
}

export class PerlObjects {
  readonly #memory: ProcessMemory;
  readonly #layout: PerlLayout;
  readonly #hasThreads: boolean;

  constructor(memory: ProcessMemory, layout: PerlLayout, hasThreads: boolean) {
    this.#memory = memory;
    this.#layout = layout;
    this.#hasThreads = hasThreads;
  }

  view(address: number, length: number): DataView | undefined {
    if (!(address > 0 && address + length < MAX_ADDRESS)) return undefined;
    const bytes = this.#memory.read(address, length);
    return bytes?.length === length ? new DataView(bytes.buffer, bytes.byteOffset, length) : undefined;
  }

  word(address: number): number {
    const view = this.view(address, 8);
    return view ? wordAt(view, 0) : 0;
  }

  /** Undefined where none of that type is there. */
  sv(address: number, type: number): Sv | undefined {
    const view = address % 8 === 0 ? this.view(address, SV.bytes) : undefined;
    const flags = view?.getUint32(SV.flags, true) ?? 0;
    if (!view || (flags & SV.typeMask) !== type) return undefined;
    return { body: wordAt(view, SV.body), flags, value: wordAt(view, SV.value) };
  }

  /** Of a symbol, by the name that it was defined under. */
  symbolName(address: number): PerlName | undefined {
    const gv = this.sv(address, TYPE.GV);
    if (!gv) return undefined;
    const effective = gv.flags & FLAG.hasGp && gv.value > 0 ? this.word(gv.value + GP_EGV) : 0;
    const body = (effective > 0 ? this.sv(effective, TYPE.GV)?.body : undefined) ?? gv.body;
    const view = this.view(body, XPVGV.bytes);
    const name = view && this.hek(wordAt(view, XPVGV.name));
    return name === undefined ? undefined : { stash: this.stashName(wordAt(view!, XPVGV.stash)), name };
  }

  /** Of a function that has its name itself. */
  functionName(address: number): PerlName | undefined {
    const cv = this.sv(address, TYPE.CV);
    const view = cv && this.view(cv.body, XPVCV.bytes);
    const name = view && this.hek(wordAt(view, XPVCV.name));
    return name === undefined ? undefined : { stash: this.stashName(wordAt(view!, XPVCV.stash)), name };
  }

  /** '' where it has none. */
  stashName(address: number): string {
    const hv = this.sv(address, TYPE.HV);
    if (!hv || !(hv.flags & FLAG.hasAux)) return '';
    const aux = this.view(this.#auxOf(hv), AUX.bytes);
    if (!aux) return '';
    const [name, count] = [wordAt(aux, AUX.name), aux.getInt32(AUX.count, true)];
    const hek = count === 0 ? name : this.word(count < 0 ? name + 8 : name);
    return this.hek(hek) ?? '';
  }

  #auxOf({ body, value }: Sv): number {
    if (this.#layout.hasNameInBody) return body + XPVHV.bytes;
    const max = this.word(body + XPVHV.max);
    return max < MAX_BUCKETS ? value + (max + 1) * 8 : 0;
  }

  /** A shared name. */
  hek(address: number): string | undefined {
    const length = this.view(address, HEK.text)?.getInt32(HEK.length, true) ?? -1;
    if (length <= 0 || length > 0xffff) return undefined;
    const shown = Math.min(length, MAX_NAME);
    // behind the text and a NUL are flags
    const bytes = this.#memory.read(address + HEK.text, length + 2);
    if (bytes?.length !== length + 2 || bytes[length] !== 0 || bytes.subarray(0, length).includes(0))
      return undefined;
    const encoding = bytes[length + 1]! & IS_UTF8 ? 'utf8' : 'latin1';
    const text = Buffer.from(bytes.subarray(0, shown)).toString(encoding);
    return length > MAX_NAME ? `${text}…` : text;
  }

  statement(address: number): Statement | undefined {
    const view = this.view(address, OP.bytes);
    if (!view) return undefined;
    return { line: view.getUint32(OP.line, true), file: this.#file(wordAt(view, OP.file)) };
  }

  #file(address: number): string {
    if (this.#hasThreads) return this.#text(address);
    // a symbol that is called _<FILE
    const gv = this.sv(address, TYPE.GV);
    const name = gv ? this.hek(this.word(gv.body + XPVGV.name)) : undefined;
    return name?.startsWith('_<') ? name.slice(2) : '';
  }

  /** Up to its NUL; '' where none is there. */
  #text(address: number): string {
    if (!(address >= 4096 && address < MAX_ADDRESS - MAX_FILE)) return '';
    const bytes = this.#memory.read(address, MAX_FILE);
    const end = bytes?.indexOf(0) ?? -1;
    return end < 0 ? '' : Buffer.from(bytes!.subarray(0, end)).toString();
  }
}

export const wordAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
