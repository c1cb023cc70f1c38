/**
 * Is CRuby in this ELF file, which version, and where is what unwinding needs? Told by symbols that extensions need (`ruby_version`,
 * `rb_iseq_eval_main`), never by the file's name. What a build hides is found in the machine code of functions that it exports.
 */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile, Machine } from '../../../common/elf/elf.ts';
import {
  type CodeRange,
  type FunctionTable,
  findFunction,
  readFunctions,
} from '../../../common/elf/function-ranges.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findNamedSymbols, type NamedSymbol } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { layoutOf, type RubyLayout } from './layout.ts';
import {
  type Branch,
  type Code,
  type CollectorPlace,
  type ContextAccess,
  type Decoder,
  sizeOf,
} from './machine-code.ts';
import { amd64 } from './machine-code-amd64.ts';
import { arm64 } from './machine-code-arm64.ts';

export interface RubyBinary {
  /** `3.3.8`. */
  version: string;
  layout: RubyLayout;
  /** rb_vm_exec, and what runs instructions in it; the second is undefined where it is part of the first. */
  loop: CodeRange;
  core: CodeRange | undefined;
  access: ContextAccess;
  /** Undefined: when the collector runs is not known. */
  collector: CollectorPlace | undefined;
  /** global_symbols; undefined: functions that are written in C have no names. */
  symbols: number | undefined;
  /** Difference between virtual address and file offset of the code. */
  textBias: number;
  isMusl: boolean;
}

const VERSION = 'ruby_version';
const WANTED = [
  VERSION,
  'rb_vm_exec',
  'rb_iseq_eval',
  'rb_iseq_eval_main',
  'rb_id2str',
  'rb_during_gc',
  'ruby_current_execution_context_ptr',
  'ruby_global_symbols',
] as const;
type Wanted = (typeof WANTED)[number];
const MAX_VERSION = 16;
const MAX_CODE = 64 << 10;
/** Instructions of Ruby are run by some 20 KiB of code. */
const MIN_CORE = 8 << 10;
/** What gives the execution context and no more, where that is a function of its own. */
const MAX_GETTER = 64;

const DECODERS: Readonly<Record<Machine, Decoder>> = { x86_64: amd64, aarch64: arm64 };

/** Undefined where the file has no Ruby. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectRuby(elf: ElfFile): RubyBinary | undefined {
  const symbols = findNamedSymbols(elf, VERSION, WANTED);
  const [named, main] = [symbols.get(VERSION), symbols.get('rb_iseq_eval_main')];
  if (!named || !main) return undefined;
  const version = readVersion(elf, named.address);
  if (!version) return undefined;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const layout = layoutOf(major, minor);
  if (!layout) throw new UnsupportedRuntime(`Ruby ${version}: 2.7 is the oldest`);
  const finder = new Finder(elf, symbols);
  const loop = finder.loop();
  const access = finder.access();
  if (!loop || !access)
    throw new UnsupportedRuntime(
      `Ruby ${version}: ${loop ? 'its execution context' : 'rb_vm_exec'} was not found`,
    );
  return {
    version,
    layout,
    loop,
    core: finder.core(loop),
    access,
    collector: finder.collector(),
    symbols: finder.symbols(),
    textBias: textBiasAt(elf, loop.start) ?? 0,
    isMusl: usesMusl(elf),
  };
}

function readVersion(elf: ElfFile, address: number): string | undefined {
  const offset = elf.addressToFileOffset(address);
  if (offset === undefined || offset + MAX_VERSION > elf.source.size) return undefined;
  return /^\d+\.\d+\.\d+/.exec(Buffer.from(elf.source.read(offset, MAX_VERSION)).toString('latin1'))?.[0];
}

class Finder {
  readonly #elf: ElfFile;
  readonly #symbols: ReadonlyMap<Wanted, NamedSymbol>;
  readonly #functions: FunctionTable;
  readonly #decoder: Decoder;

  constructor(elf: ElfFile, symbols: ReadonlyMap<Wanted, NamedSymbol>) {
    this.#elf = elf;
    this.#symbols = symbols;
    this.#functions = readFunctions(elf);
    this.#decoder = DECODERS[elf.machine];
  }

  /** rb_vm_exec: what both functions that evaluate code end with. */
  loop(): CodeRange | undefined {
    const exported = this.#symbols.get('rb_vm_exec');
    if (exported) return { start: exported.address, end: exported.address + exported.size };
    const ofMain = this.#targets(this.#code('rb_iseq_eval_main'), ['call', 'jump']);
    const ofOther = new Set(this.#targets(this.#code('rb_iseq_eval'), ['call', 'jump']));
    const shared = ofMain.filter((target) => ofOther.has(target)).at(-1);
    return shared === undefined ? undefined : findFunction(this.#functions, shared);
  }

  /** vm_exec_core: the one large function that rb_vm_exec calls. */
  core(loop: CodeRange): CodeRange | undefined {
    if (sizeOf(loop) > MAX_CODE) return undefined;
    const called = this.#targets(this.#read(loop), ['call']).flatMap((target) => {
      const range = findFunction(this.#functions, target);
      return range?.start === target && sizeOf(range) >= MIN_CORE ? [range] : [];
    });
    return called.sort((a, b) => sizeOf(b) - sizeOf(a))[0];
  }

  access(): ContextAccess | undefined {
    const global = this.#symbols.get('ruby_current_execution_context_ptr');
    if (global) return { kind: 'global', address: global.address };
    const main = this.#code('rb_iseq_eval_main');
    return this.#decoder.firstThreadLocal(main) ?? this.#givenAccess(main);
  }

  /** Ruby for arm64 has a function for it (rb_current_ec_noinline), which others call first. */
  #givenAccess(main: Code): ContextAccess | undefined {
    const [getter] = this.#targets(main, ['call']);
    const range = getter === undefined ? undefined : findFunction(this.#functions, getter);
    if (range?.start !== getter || !range || sizeOf(range) > MAX_GETTER) return undefined;
    return this.#decoder.firstThreadLocal(this.#read(range));
  }

  collector(): CollectorPlace | undefined {
    return this.#decoder.readsCollector(this.#code('rb_during_gc'));
  }

  /** global_symbols begins with the last ID, which rb_id2str, or what it jumps to, compares an ID with. */
  symbols(): number | undefined {
    const exported = this.#symbols.get('ruby_global_symbols');
    if (exported) return exported.address;
    const code = this.#code('rb_id2str');
    const [helper] = this.#targets(code, ['jump']);
    const range = helper === undefined ? undefined : findFunction(this.#functions, helper);
    return (
      this.#decoder.firstCompared(code) ??
      (range && this.#decoder.firstCompared(this.#read({ start: helper!, end: range.end })))
    );
  }

  #targets(code: Code, branches: readonly Branch[]): number[] {
    return this.#decoder.targetsOf(code, branches);
  }

  #code(name: Wanted): Code {
    const { address = 0, size = 0 } = this.#symbols.get(name) ?? {};
    return this.#read({ start: address, end: address + size });
  }

  #read({ start, end }: CodeRange): Code {
    return { address: start, bytes: codeAt(this.#elf, start, Math.min(end - start, MAX_CODE)) };
  }
}
