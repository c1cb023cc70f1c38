/**
 * Follows machine code from where functions begin, along jumps and into calls, and notes at each instruction where the
 * frame is. Three checks keep out what is false: all ways to an instruction must agree, a function must return with the
 * stack that it was called with, and what is not understood is not passed. A function that fails the second says
 * nothing at all.
 */
import { type CodeReader, Effect, type FrameTracker, type Processor } from './code-reader.ts';
import { LONGEST_INSTRUCTION } from './instruction.ts';

/** The code at an address, undefined where there is none: a piece of it that begins at `start`. */
export type ReadCode = (address: number) => { start: number; bytes: Uint8Array } | undefined;

export interface WalkOptions {
  /** Addresses that are described already are neither noted nor passed. */
  covered(address: number): boolean;
  maxInstructions: number;
  maxStarts: number;
}

/** An instruction, and where the frame is before it; `state` is the same object each time. */
export interface WalkedInstruction {
  address: number;
  length: number;
  state: FrameTracker;
}

/** What calls a function that never returns may itself never return. */
const PASSES = 3;
const MAX_ENTRY_BYTES = 64;
const FUNCTION_ALIGNMENT = 16;
/** Compilers align functions to no more than a cache line. */
const MAX_PADDING_BYTES = 64;
/** A note is one number: start, state and length. */
const LENGTHS = 16;
const STATES = 2 ** 16;
const STARTS_ANOTHER: ReadonlySet<number> = new Set([Effect.CALL, Effect.LOAD_ADDRESS, Effect.JUMP]);
const ENDS: ReadonlySet<number> = new Set([Effect.JUMP, Effect.JUMP_INDIRECT, Effect.RETURN, Effect.END]);

export class CodeWalk {
  readonly #processor: Processor;
  readonly #read: ReadCode;
  readonly #options: WalkOptions;
  readonly #states: number[] = [];
  readonly #idByKey = new Map<number, number>();
  readonly #starts: number[] = [];
  readonly #isStart = new Set<number>();
  readonly #isBadStart = new Set<number>();
  /** By index of the start; what is not known to end counts as well. */
  readonly #mayReturn = new Set<number>();
  #neverReturns: ReadonlySet<number> = new Set();
  readonly #conflicts = new Set<number>();
  readonly #notes = new Map<number, number>();
  /** Address and state of what is still to be followed. */
  readonly #todo: number[] = [];
  readonly #state: FrameTracker;
  #origin = 0;
  /** The last line that was followed ended where nothing runs behind it, or where this start had been. */
  #hasEnded = false;
  #reader: CodeReader | undefined;
  #readerEnd = 0;
  #readerStart = 0;

  constructor(processor: Processor, read: ReadCode, options: WalkOptions) {
    this.#processor = processor;
    this.#state = processor.newFrame();
    this.#read = read;
    this.#options = options;
  }

  /** A function begins there. */
  addStart(address: number): void {
    if (this.#isStart.has(address) || this.#starts.length >= this.#options.maxStarts) return;
    if (!this.#seek(address) || this.#options.covered(address)) return;
    this.#isStart.add(address);
    this.#starts.push(address);
  }

  /** A program's entry point: it has no caller, but it loads and calls the functions that come next. */
  addEntry(address: number): void {
    for (let at = address; at < address + MAX_ENTRY_BYTES; ) {
      const reader = this.#seek(at);
      reader?.read(at - this.#readerStart);
      if (!reader || reader.effect === Effect.UNKNOWN) return;
      const { effect, value, length } = reader;
      if (STARTS_ANOTHER.has(effect)) this.addStart(value);
      if (ENDS.has(effect)) return;
      at += length;
    }
  }

  /** Follows all starts and those that they lead to: each time more is known of where functions begin and return. */
  run(): void {
    for (let pass = 1; pass <= PASSES; pass++) {
      this.#notes.clear();
      this.#conflicts.clear();
      this.#isBadStart.clear();
      this.#mayReturn.clear();
      this.#walkAll();
      this.#neverReturns = new Set(this.#starts.filter((_, i) => !this.#mayReturn.has(i)));
    }
  }

  /** In ascending order, without those of starts whose code contradicts itself. */
  *instructions(): Iterable<WalkedInstruction> {
    const state = this.#processor.newFrame();
    for (const address of Float64Array.from(this.#notes.keys()).sort()) {
      const note = this.#notes.get(address)!;
      const origin = Math.floor(note / (LENGTHS * STATES));
      if (this.#isBadStart.has(origin) || this.#conflicts.has(address)) continue;
      state.key = this.#states[Math.floor(note / LENGTHS) % STATES]!;
      yield { address, length: note % LENGTHS, state };
    }
  }

  #walkAll(): void {
    for (let i = 0; i < this.#starts.length; i++) {
      this.#origin = i;
      this.#todo.push(this.#starts[i]!, this.#processor.newFrame().key);
      while (this.#todo.length > 0) this.#follow();
    }
  }

  /** The reader that has the code there. */
  #seek(address: number): CodeReader | undefined {
    if (address >= this.#readerStart && address + LONGEST_INSTRUCTION <= this.#readerEnd) return this.#reader;
    const code = this.#read(address);
    this.#reader = code && this.#processor.newReader(code.bytes, code.start);
    this.#readerStart = code?.start ?? 0;
    this.#readerEnd = code ? code.start + code.bytes.length : 0;
    return this.#reader;
  }

  /** From one place on, straight ahead. */
  #follow(): void {
    this.#state.key = this.#todo.pop()!;
    let address = this.#todo.pop()!;
    for (let length = this.#visit(address); length > 0; length = this.#visit(address)) address += length;
    if (!this.#hasEnded) this.#mayReturn.add(this.#origin);
  }

  /** Notes the instruction; its length if the one behind it runs next, in the state that #state then is. */
  #visit(address: number): number {
    this.#hasEnded = false;
    const { key } = this.#state;
    const note = this.#notes.get(address);
    if (note !== undefined) {
      if (this.#states[Math.floor(note / LENGTHS) % STATES] !== key) this.#distrust(address);
      this.#hasEnded = Math.floor(note / (LENGTHS * STATES)) === this.#origin;
      return 0;
    }
    if (this.#notes.size >= this.#options.maxInstructions || this.#options.covered(address)) return 0;
    const reader = this.#seek(address);
    reader?.read(address - this.#readerStart);
    if (!reader || reader.effect === Effect.UNKNOWN) return 0;
    const state = this.#idOf(key);
    if (state === undefined) return 0;
    const { length } = reader;
    this.#notes.set(address, (this.#origin * STATES + state) * LENGTHS + length);
    return this.#flow(reader, address) ? length : 0;
  }

  /** What follows from a state that is in doubt is in doubt as well: up to where its straight line ends. */
  #distrust(address: number): void {
    let at = address;
    for (let note = this.#notes.get(at); note !== undefined && !this.#conflicts.has(at); ) {
      this.#conflicts.add(at);
      const reader = this.#seek(at);
      reader?.read(at - this.#readerStart);
      if (!reader || ENDS.has(reader.effect)) return;
      at += note % LENGTHS;
      note = this.#notes.get(at);
    }
  }

  #idOf(key: number): number | undefined {
    let id = this.#idByKey.get(key);
    if (id === undefined) {
      if (this.#states.length >= STATES) return undefined;
      id = this.#states.push(key) - 1;
      this.#idByKey.set(key, id);
    }
    return id;
  }

  #flow(reader: CodeReader, address: number): boolean {
    const { effect, value, length } = reader;
    switch (effect) {
      case Effect.RETURN:
        if (!this.#state.isAsAtEntry) this.#isBadStart.add(this.#origin);
        return false;
      case Effect.JUMP:
      case Effect.BRANCH:
        this.#todo.push(value, this.#state.key);
        this.#hasEnded = true;
        return effect === Effect.BRANCH;
      case Effect.CALL:
        this.addStart(value);
        this.#hasEnded = this.#neverReturns.has(value) || this.#isLastCall(address + length);
        return !this.#hasEnded;
      case Effect.CALL_INDIRECT:
        this.#hasEnded = this.#isLastCall(address + length);
        return !this.#hasEnded;
      case Effect.LOAD_ADDRESS:
        // of code that is loaded the start of a function is likely, other places in it are not
        if (value % this.#processor.loadedAlignment === 0) this.addStart(value);
        return true;
      case Effect.END:
        this.#hasEnded = true;
        return false;
      case Effect.JUMP_INDIRECT:
        return false;
      default:
        return this.#state.apply(reader);
    }
  }

  #isLastCall(behind: number): boolean {
    return !this.#state.isSafeFromCalls || this.#endsFunction(behind);
  }

  /** Whether another function comes next, perhaps behind padding: behind a call that never returns. */
  #endsFunction(from: number): boolean {
    for (let at = from; at <= from + MAX_PADDING_BYTES; ) {
      if (this.#isStart.has(at)) return true;
      const reader = this.#seek(at);
      reader?.read(at - this.#readerStart);
      if (!reader || reader.beginsFunction) return true;
      if (at % FUNCTION_ALIGNMENT === 0) return at > from || reader.savesRegister;
      if (reader.effect !== Effect.PADDING && reader.effect !== Effect.END) return false;
      at += reader.length;
    }
    return false;
  }
}
