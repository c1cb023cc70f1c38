/** Constants in Rust's v0 names: arguments of generics, and sizes of arrays. */
import { NotDemangled } from './output.ts';
import type { RustReader } from './rust-reader.ts';

/** What of the demangler constants are printed with. */
interface RustPrinter {
  readonly reader: RustReader;
  add(text: string): void;
  /** Generic arguments of a path in a value are written `::<…>`. */
  path(inValue: boolean): void;
  /** How many there were. */
  list(printItem: () => void): number;
  backReference(print: () => void): void;
}

/** `inValue`: where an expression stands anyway; elsewhere what is not a plain literal needs braces. */
export function printConstant(demangler: RustPrinter, inValue: boolean): void {
  const { reader } = demangler;
  const tag = reader.next();
  if ('hjmotyailnsx'.includes(tag)) {
    printInteger(demangler);
    return;
  }
  if ('AeRQTV'.includes(tag)) {
    const needsBraces = !inValue && !isReferenceToText(tag, reader.peek());
    if (needsBraces) demangler.add('{');
    printCompound(demangler, tag);
    if (needsBraces) demangler.add('}');
    return;
  }
  switch (tag) {
    case 'p':
      demangler.add('_');
      return;
    case 'b':
      demangler.add({ '0': 'false', '1': 'true' }[reader.hex()] ?? fail());
      return;
    case 'c':
      demangler.add(`'${escapeText(String.fromCodePoint(codePoint(reader.hex())), "'")}'`);
      return;
    case 'B':
      demangler.backReference(() => printConstant(demangler, inValue));
      return;
    default:
      fail();
  }
}

const fail = (): never => {
  throw new NotDemangled('no constant');
};

const isReferenceToText = (tag: string, next: string): boolean => tag === 'R' && next === 'e';

function printInteger(demangler: RustPrinter): void {
  const sign = demangler.reader.take('n') ? '-' : '';
  const digits = demangler.reader.hex();
  const value = BigInt(`0x${digits === '' ? '0' : digits}`);
  demangler.add(sign + (value < 1n << 64n ? value.toString() : `0x${digits}`));
}

function printCompound(demangler: RustPrinter, tag: string): void {
  const { reader } = demangler;
  switch (tag) {
    case 'e':
      demangler.add(`*${readText(demangler)}`);
      return;
    case 'R':
      if (reader.take('e')) {
        demangler.add(readText(demangler));
        return;
      }
      demangler.add('&');
      printConstant(demangler, true);
      return;
    case 'Q':
      demangler.add('&mut ');
      printConstant(demangler, true);
      return;
    case 'A':
      demangler.add('[');
      demangler.list(() => printConstant(demangler, true));
      demangler.add(']');
      return;
    case 'T':
      demangler.add('(');
      demangler.add(demangler.list(() => printConstant(demangler, true)) === 1 ? ',)' : ')');
      return;
    default:
      printVariant(demangler);
      return;
  }
}

function printVariant(demangler: RustPrinter): void {
  const { reader } = demangler;
  const shape = reader.next();
  demangler.path(true);
  if (shape === 'U') return;
  if (shape === 'T') {
    demangler.add('(');
    demangler.list(() => printConstant(demangler, true));
    demangler.add(')');
    return;
  }
  if (shape !== 'S') fail();
  demangler.add(' { ');
  demangler.list(() => {
    reader.optional('s');
    demangler.add(`${reader.identifier()}: `);
    printConstant(demangler, true);
  });
  demangler.add(' }');
}

/** The bytes of a string, in hexadecimal digits, as Rust would write it. */
function readText(demangler: RustPrinter): string {
  const hex = demangler.reader.hex();
  if (hex.length % 2 !== 0) fail();
  const bytes = Uint8Array.from({ length: hex.length / 2 }, (_, i) =>
    Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16),
  );
  try {
    return `"${escapeText(new TextDecoder('utf-8', { fatal: true }).decode(bytes), '"')}"`;
  } catch {
    return fail();
  }
}

function codePoint(hex: string): number {
  const point = Number.parseInt(hex || '0', 16);
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) fail();
  return point;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\0': '\\0',
  '\\': '\\\\',
};

function escapeText(text: string, quote: string): string {
  return [...text]
    .map((char) => {
      if (char === quote) return `\\${char}`;
      const code = char.codePointAt(0)!;
      return ESCAPES[char] ?? (code < 0x20 || code === 0x7f ? `\\u{${code.toString(16)}}` : char);
    })
    .join('');
}
