/**
 * Demangles Rust's v0 names, RFC 2603 and <https://doc.rust-lang.org/rustc/symbol-mangling/v0.html>, as
 * rustc-demangle's short form writes them: without the hashes of crates and the types of constants.
 */
import { Budget, NotDemangled, Output } from './output.ts';
import { printConstant } from './rust-constants.ts';
import { RustReader } from './rust-reader.ts';

const BASIC_TYPES: Readonly<Record<string, string>> = {
  a: 'i8',
  b: 'bool',
  c: 'char',
  d: 'f64',
  e: 'str',
  f: 'f32',
  h: 'u8',
  i: 'isize',
  j: 'usize',
  l: 'i32',
  m: 'u32',
  n: 'i128',
  o: 'u128',
  p: '_',
  s: 'i16',
  t: 'u16',
  u: '()',
  v: '...',
  x: 'i64',
  y: 'u64',
  z: '!',
};

/** Throws {@link NotDemangled}. */
export function demangleRustV0(mangled: string): string {
  const [, source, suffix] = /^_{1,2}R([A-Z][A-Za-z0-9_]*)(\..*)?$/.exec(mangled) ?? [];
  if (source === undefined) throw new NotDemangled('no v0 name');
  const demangler = new RustDemangler(source);
  demangler.path(true);
  // the crate that made the instance
  if (demangler.reader.peek() !== '') demangler.silently(() => demangler.path(false));
  if (demangler.reader.peek() !== '') throw new NotDemangled('more behind the name');
  const rest = suffix?.replace(/^\.llvm\.[0-9A-Fa-f@]+/, '') ?? '';
  return demangler.text + rest;
}

class RustDemangler {
  readonly reader: RustReader;
  readonly #out = new Output();
  readonly #budget = new Budget();
  #isSilent = false;
  /** Lifetimes bound around here. */
  #bound = 0;

  constructor(source: string) {
    this.reader = new RustReader(source);
  }

  get text(): string {
    return this.#out.text;
  }

  add(text: string): void {
    if (!this.#isSilent) this.#out.add(text);
  }

  /** Reads without writing. */
  silently(read: () => void): void {
    const before = this.#isSilent;
    this.#isSilent = true;
    read();
    this.#isSilent = before;
  }

  /** `inValue`: generic arguments are written `::<…>`, as in an expression. */
  path(inValue: boolean): void {
    this.#budget.enter();
    this.#path(inValue);
    this.#budget.leave();
  }

  #path(inValue: boolean): void {
    const { reader } = this;
    const tag = reader.next();
    switch (tag) {
      case 'C':
        reader.optional('s');
        this.add(reader.identifier());
        return;
      case 'N':
        this.#nested(inValue);
        return;
      case 'M':
      case 'X':
        reader.optional('s');
        this.silently(() => this.path(false));
        this.#implementation(tag === 'X');
        return;
      case 'Y':
        this.#implementation(true);
        return;
      case 'I':
        this.path(inValue);
        this.add(inValue ? '::<' : '<');
        this.list(() => this.#genericArgument());
        this.add('>');
        return;
      case 'B':
        this.backReference(() => this.path(inValue));
        return;
      default:
        throw new NotDemangled('no path');
    }
  }

  #implementation(hasTrait: boolean): void {
    this.add('<');
    this.type();
    if (hasTrait) {
      this.add(' as ');
      this.path(false);
    }
    this.add('>');
  }

  #nested(inValue: boolean): void {
    const { reader } = this;
    const namespace = reader.next();
    if (!/[A-Za-z]/.test(namespace)) throw new NotDemangled('no namespace');
    this.path(inValue);
    const disambiguator = reader.optional('s');
    const name = reader.identifier();
    if (namespace >= 'a') {
      if (name !== '') this.add(`::${name}`);
      return;
    }
    const kind = { C: 'closure', S: 'shim' }[namespace] ?? namespace;
    this.add(`::{${kind}${name === '' ? '' : `:${name}`}#${disambiguator}}`);
  }

  /** With commas between, up to an `E`. Returns how many. */
  list(read: () => void): number {
    let count = 0;
    while (!this.reader.take('E')) {
      if (count++ > 0) this.add(', ');
      read();
    }
    return count;
  }

  /** Goes back to what was written before, and returns. */
  backReference(read: () => void): void {
    const { reader } = this;
    const start = reader.at - 1;
    const target = reader.base62();
    if (target >= start) throw new NotDemangled('a reference forward');
    if (this.#isSilent) return;
    const after = reader.at;
    reader.at = target;
    this.#budget.enter();
    read();
    this.#budget.leave();
    reader.at = after;
  }

  #genericArgument(): void {
    if (this.reader.take('L')) this.add(this.#lifetime(this.reader.base62()));
    else if (this.reader.take('K')) printConstant(this, false);
    else this.type();
  }

  #lifetime(index: number): string {
    if (index === 0) return "'_";
    const depth = this.#bound - index;
    if (depth < 0) throw new NotDemangled('no such lifetime');
    return depth < 26 ? `'${String.fromCharCode(0x61 + depth)}` : `'_${depth}`;
  }

  /** Reads what binds lifetimes of its own. */
  #binder(read: () => void): void {
    const count = this.reader.optional('G');
    if (count > 64) throw new NotDemangled('too many lifetimes');
    if (count > 0) {
      const names: string[] = [];
      for (let i = 0; i < count; i++) {
        this.#bound++;
        names.push(this.#lifetime(1));
      }
      this.add(`for<${names.join(', ')}> `);
    }
    read();
    this.#bound -= count;
  }

  type(): void {
    this.#budget.enter();
    this.#type();
    this.#budget.leave();
  }

  #type(): void {
    const { reader } = this;
    const tag = reader.next();
    const basic = BASIC_TYPES[tag];
    if (basic) {
      this.add(basic);
      return;
    }
    switch (tag) {
      case 'A':
      case 'S':
        this.add('[');
        this.type();
        if (tag === 'A') {
          this.add('; ');
          printConstant(this, true);
        }
        this.add(']');
        return;
      case 'T':
        this.add('(');
        this.add(this.list(() => this.type()) === 1 ? ',)' : ')');
        return;
      case 'R':
      case 'Q': {
        this.add('&');
        if (reader.take('L')) {
          const index = reader.base62();
          if (index !== 0) this.add(`${this.#lifetime(index)} `);
        }
        this.add(tag === 'Q' ? 'mut ' : '');
        this.type();
        return;
      }
      case 'P':
      case 'O':
        this.add(tag === 'P' ? '*const ' : '*mut ');
        this.type();
        return;
      case 'F':
        this.#binder(() => this.#function());
        return;
      case 'D':
        this.#dynamic();
        return;
      case 'B':
        this.backReference(() => this.type());
        return;
      default:
        reader.at--;
        this.path(false);
        return;
    }
  }

  #function(): void {
    const { reader } = this;
    if (reader.take('U')) this.add('unsafe ');
    if (reader.take('K')) {
      const abi = reader.take('C') ? 'C' : reader.identifier().replaceAll('_', '-');
      this.add(`extern "${abi}" `);
    }
    this.add('fn(');
    this.list(() => this.type());
    this.add(')');
    if (reader.take('u')) return;
    this.add(' -> ');
    this.type();
  }

  #dynamic(): void {
    const { reader } = this;
    this.add('dyn ');
    this.#binder(() => {
      for (let count = 0; !reader.take('E'); count++) {
        if (count > 0) this.add(' + ');
        this.#dynamicTrait();
      }
    });
    if (!reader.take('L')) throw new NotDemangled('no lifetime');
    const index = reader.base62();
    if (index !== 0) this.add(` + ${this.#lifetime(index)}`);
  }

  #dynamicTrait(): void {
    let isOpen = this.#pathWithOpenGenerics();
    while (this.reader.take('p')) {
      this.add(isOpen ? ', ' : '<');
      isOpen = true;
      this.add(`${this.reader.identifier()} = `);
      this.type();
    }
    if (isOpen) this.add('>');
  }

  /** A path whose `<` stays open, for the associated types that follow; false where it has none. */
  #pathWithOpenGenerics(): boolean {
    const { reader } = this;
    if (reader.take('B')) {
      let isOpen = false;
      this.backReference(() => {
        isOpen = this.#pathWithOpenGenerics();
      });
      return isOpen;
    }
    if (!reader.take('I')) {
      this.path(false);
      return false;
    }
    this.path(false);
    this.add('<');
    this.list(() => this.#genericArgument());
    return true;
  }
}
