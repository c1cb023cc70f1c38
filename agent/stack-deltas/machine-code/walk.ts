/**
 * Follows machine code from where functions begin, along jumps and into calls, and notes at each instruction where the
 * frame is. Four checks keep out what is false: all ways to an instruction must agree, a function must return with the
 * stack that it was called with, what is not understood is not passed, and what neither returns nor is called may have
 * no caller on this stack: threaded code (Haskell's) jumps to what comes next. A function that fails the second or the
 * fourth says nothing at all.
 */
import { type CodeReader, Effect, type FrameTracker, type Processor } from './code-reader.ts';
import { LONGEST_INSTRUCTION } from './instruction.ts';

/** The code at an address, undefined where there is none: a piece of it that begins at `start`. */
export type ReadCode = (address: number) => { start: number; bytes: Uint8Array } | undefined;

export interface WalkOptions {
  /** Addresses that are described already are neither noted nor passed. */
  covered(address: number): boolean;
  maxInstructions: number;
  /** Instructions that are read in search of functions that nothing leads to. */
  maxGuesses: number;
  maxStarts: number;
}

/** An instruction, and where the frame is before it; `state` is the same object each time. */
export interface WalkedInstruction {
  address: number;
  length: number;
  state: FrameTracker;
}

/** A jump through a table of a function's own cases. */
interface TableJump {
  /** Index of the start. */
  origin: number;
  key: number;
  behind: number;
}

/** What calls a function that never returns may itself never return. */
const PASSES = 3;
const MAX_ENTRY_BYTES = 64;
const FUNCTION_ALIGNMENT = 16;
/** Compilers align functions to no more than a cache line. */
const MAX_PADDING_BYTES = 64;
/** Instructions of a range that belong to no function: if there are more, and more than of functions, it holds data. */
const MAX_IN_VAIN = 32_768;
/** Functions that jump to one another, as far as is looked for one that returns. */
const MAX_CHAIN = 64;
/** A note is one number: start, state and length. */
const LENGTHS = 16;
const STATES = 2 ** 16;
const STARTS_ANOTHER: ReadonlySet<number> = new Set([Effect.CALL, Effect.LOAD_ADDRESS, Effect.JUMP]);
const ENDS: ReadonlySet<number> = new Set([Effect.JUMP, Effect.JUMP_INDIRECT, Effect.RETURN, Effect.END]);

const nextAligned = (at: number): number => (Math.floor(at / FUNCTION_ALIGNMENT) + 1) * FUNCTION_ALIGNMENT;

export class CodeWalk {
  readonly #processor: Processor;
  readonly #read: ReadCode;
  readonly #options: WalkOptions;
  readonly #states: number[] = [];
  readonly #idByKey = new Map<number, number>();
  readonly #starts: number[] = [];
  readonly #isStart = new Set<number>();
  readonly #isBadStart = new Set<number>();
  /** Start addresses that a call leads to, or the code that every program begins with. */
  readonly #isCalled = new Set<number>();
  /** By index of the start: it returns, or jumps with its caller's stack to a function that is described. */
  readonly #returns = new Set<number>();
  /** Whose code those by index go on in. */
  readonly #goesOnIn = new Map<number, Set<number>>();
  /** Jumps through tables, by address. */
  readonly #tableJumps = new Map<number, TableJump>();
  /** States that starts begin in, by index, unless it is that of an entry: cases of a jump through a table. */
  readonly #startKeys: number[] = [];
  /** What the current start has noted, where that is a guess: it says nothing where it contradicts others. */
  #trail: number[] | undefined;
  /** Of the current guess: the first of its jumps through tables, and its first straight line. */
  #firstTableJump: TableJump | undefined;
  #lineEnd = 0;
  #hasLineEnded = false;
  /** Instructions that guesses have read. */
  #guessed = 0;
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

  /** A function begins there; `isCalled`: others call it, so that it has their frame above its own. */
  addStart(address: number, isCalled = false): void {
    if (isCalled) this.#isCalled.add(address);
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
      if (STARTS_ANOTHER.has(effect)) this.addStart(value, true);
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
      this.#returns.clear();
      this.#tableJumps.clear();
      this.#goesOnIn.clear();
      this.#walkFrom(0);
      this.#neverReturns = new Set(this.#starts.filter((_, i) => !this.#mayReturn.has(i)));
    }
  }

  /**
   * After run(): looks for functions in [from, to) that nothing leads to. One begins where that range does or where
   * another one has ended, behind padding; behind a jump through a table the function itself goes on. What turns out to
   * be neither is forgotten.
   */
  sweep(from: number, to: number): void {
    let jump: TableJump | undefined;
    const { size } = this.#notes;
    const before = this.#guessed;
    for (let at = this.#skipFilling(from, to); at < to; at = this.#skipFilling(at, to)) {
      const useful = this.#notes.size - size;
      const inVain = this.#guessed - before - useful;
      if (this.#guessed >= this.#options.maxGuesses || inVain > MAX_IN_VAIN + useful) return;
      const note = this.#notes.get(at);
      if (note !== undefined) {
        if (this.#isStart.has(at)) jump = undefined;
        jump = this.#tableJumps.get(at) ?? jump;
        at += note % LENGTHS;
      } else if (!(jump && this.#tryCase(at, jump)) && !this.#tryStart(at)) {
        at = this.#passFailure(at, to);
        jump = undefined;
      }
    }
  }

  /** Behind the first straight line of what is not a function, or where the next one may begin. */
  #passFailure(at: number, to: number): number {
    const end = Math.max(at + 1, this.#lineEnd);
    if (this.#hasLineEnded) return end;
    let next = nextAligned(end - 1);
    while (next < to && !this.#isBehindEnd(next)) next += FUNCTION_ALIGNMENT;
    return next;
  }

  /** Whether the byte before it ends a function or fills up behind one. */
  #isBehindEnd(address: number): boolean {
    const code = this.#read(address - 1);
    return code !== undefined && this.#processor.lastBytes.has(code.bytes[address - 1 - code.start]!);
  }

  /** Whether the code there is a function; then it is noted. */
  #tryStart(address: number): boolean {
    const index = this.#starts.length;
    this.#lineEnd = address;
    this.addStart(address);
    if (this.#starts.length === index) return false;
    return this.#guess(index);
  }

  /** Whether the code there is one of those that the jump leads to. */
  #tryCase(address: number, { origin, key }: TableJump): boolean {
    if (!this.#seek(address) || this.#options.covered(address) || this.#notes.has(address)) return false;
    if (this.#isStart.has(address) || this.#isCalled.has(address)) return false;
    const index = this.#starts.push(address) - 1;
    this.#startKeys[index] = key;
    if (!this.#guess(index)) return false;
    this.#linkOrigins(origin, index);
    return true;
  }

  #guess(index: number): boolean {
    const trail: number[] = [];
    const outer = this.#trail;
    this.#trail = trail;
    this.#firstTableJump = undefined;
    this.#lineEnd = 0;
    this.#walkFrom(index, index + 1);
    const { 0: next } = [this.#firstTableJump as TableJump | undefined];
    const [lineEnd, hasLineEnded] = [this.#lineEnd, this.#hasLineEnded];
    const isBad = this.#isBadStart.has(index);
    const isFunction =
      !isBad && (this.#isBelieved(index) || (next !== undefined && this.#tryCase(next.behind, next)));
    this.#trail = outer;
    [this.#lineEnd, this.#hasLineEnded] = [lineEnd, hasLineEnded];
    if (!isFunction) for (const at of trail) this.#notes.delete(at);
    return isFunction && this.#notes.has(this.#starts[index]!);
  }

  /** What is between functions: instructions that do nothing, those that nothing runs behind, and zeros. */
  #skipFilling(from: number, to: number): number {
    for (let at = from; at < to; ) {
      const reader = this.#seek(at);
      if (!reader) return to;
      reader.read(at - this.#readerStart);
      const isFilling = reader.effect === Effect.PADDING || reader.effect === Effect.END;
      if (this.#notes.has(at) || !(isFilling || reader.isZero)) return at;
      at += isFilling ? reader.length : 1;
    }
    return to;
  }

  /** Whether it is a function like others, that has its caller's frame above its own. */
  #isBelieved(origin: number): boolean {
    const todo = [origin];
    const seen = new Set(todo);
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      const isCalled = this.#startKeys[next] === undefined && this.#isCalled.has(this.#starts[next]!);
      // all its ways are known, and none leaves it: its last call never returns, or it has none
      const isEndless = !this.#mayReturn.has(next) && !this.#trail;
      if (isCalled || isEndless || this.#returns.has(next)) return true;
      for (const other of this.#goesOnIn.get(next) ?? []) {
        if (seen.has(other) || seen.size >= MAX_CHAIN) continue;
        seen.add(other);
        todo.push(other);
      }
    }
    return false;
  }

  /** In ascending order, without those of starts that are not believed, or whose code contradicts itself. */
  *instructions(): Iterable<WalkedInstruction> {
    const state = this.#processor.newFrame();
    const believed = this.#starts.map((_, i) => !this.#isBadStart.has(i) && this.#isBelieved(i));
    for (const address of Float64Array.from(this.#notes.keys()).sort()) {
      const note = this.#notes.get(address)!;
      const origin = Math.floor(note / (LENGTHS * STATES));
      if (!believed[origin] || this.#conflicts.has(address)) continue;
      state.key = this.#states[Math.floor(note / LENGTHS) % STATES]!;
      yield { address, length: note % LENGTHS, state };
    }
  }

  /** Those of starts from that index on, and those that they lead to, or up to `end`. */
  #walkFrom(index: number, end = Infinity): void {
    for (let i = index; i < Math.min(this.#starts.length, end); i++) {
      this.#origin = i;
      this.#todo.push(this.#starts[i]!, this.#startKeys[i] ?? this.#processor.newFrame().key);
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
    if (this.#lineEnd === 0) this.#endLine(address);
    if (!this.#hasEnded) this.#mayReturn.add(this.#origin);
  }

  /** The instruction at `address` is the last one that was read in a straight line. */
  #endLine(address: number): void {
    const reader = this.#seek(address);
    reader?.read(address - this.#readerStart);
    this.#hasLineEnded = reader !== undefined && ENDS.has(reader.effect);
    this.#lineEnd = address + Math.max(1, reader?.length ?? 1);
  }

  /** Notes the instruction; its length if the one behind it runs next, in the state that #state then is. */
  #visit(address: number): number {
    this.#hasEnded = false;
    const { key } = this.#state;
    const note = this.#notes.get(address);
    if (note !== undefined) {
      this.#meet(address, note);
      return 0;
    }
    if (this.#options.covered(address)) {
      if (this.#state.isAsAtEntry) this.#returns.add(this.#origin);
      return 0;
    }
    if (this.#notes.size >= this.#options.maxInstructions) return 0;
    const reader = this.#seek(address);
    reader?.read(address - this.#readerStart);
    if (!reader || reader.effect === Effect.UNKNOWN) return 0;
    const state = this.#idOf(key);
    if (state === undefined) return 0;
    const { length } = reader;
    this.#notes.set(address, (this.#origin * STATES + state) * LENGTHS + length);
    if (this.#trail) {
      this.#guessed++;
      this.#trail.push(address);
    }
    return this.#flow(reader, address) ? length : 0;
  }

  /** Another way leads to an instruction that is noted. */
  #meet(address: number, note: number): void {
    const origin = Math.floor(note / (LENGTHS * STATES));
    this.#hasEnded = origin === this.#origin;
    if (this.#states[Math.floor(note / LENGTHS) % STATES] !== this.#state.key) {
      if (this.#trail) this.#isBadStart.add(this.#origin);
      else this.#distrust(address);
    } else if (!this.#hasEnded) this.#linkOrigins(this.#origin, origin);
  }

  #linkOrigins(from: number, to: number): void {
    const others = this.#goesOnIn.get(from);
    if (others) others.add(to);
    else this.#goesOnIn.set(from, new Set([to]));
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
        if (this.#state.isAsAtEntry) this.#returns.add(this.#origin);
        else this.#isBadStart.add(this.#origin);
        return false;
      case Effect.JUMP:
      case Effect.BRANCH:
        this.#todo.push(value, this.#state.key);
        this.#hasEnded = true;
        return effect === Effect.BRANCH;
      case Effect.CALL:
        this.addStart(value, true);
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
        // through the PLT: to a function of another file
        if (reader.isImported && this.#state.isAsAtEntry) this.#returns.add(this.#origin);
        if (reader.usesTable) this.#addTableJump(address, length);
        return false;
      default:
        return this.#state.apply(reader);
    }
  }

  #addTableJump(address: number, length: number): void {
    const jump = { origin: this.#origin, key: this.#state.key, behind: address + length };
    this.#tableJumps.set(address, jump);
    this.#firstTableJump ??= jump;
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
