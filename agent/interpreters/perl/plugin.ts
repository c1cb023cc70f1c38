/** Perl 5.28 and later: docs/interpreters/perl.md. */
import { FrameKind, PERL, PerlAccess, PerlKind, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { FrameWords, NameCache, NameFailure, RuntimeFrame, RuntimePlugin } from '../contract.ts';
import { cookieOfBits } from '../cookie.ts';
import { detectPerl, type PerlBinary } from './detect-perl.ts';
import { firstLine } from './first-statement.ts';
import { type PerlLayout, XPVCV, XPVGV } from './layout.ts';
import { type PerlName, PerlObjects, type Statement } from './objects.ts';

interface Facts {
  layout: PerlLayout;
  hasThreads: boolean;
}

/** Of enum ef_perl_kind, without a function. */
const UNNAMED: Readonly<Record<number, string>> = {
  [PerlKind.MAIN]: '(main)',
  [PerlKind.EVAL]: '(eval)',
  [PerlKind.REQUIRED]: '(required)',
};
const ADDRESS = 2 ** 45;
const KINDS = 8;
const LINE = 2 ** 19;
const ANONYMOUS = '__ANON__';
const ENTRY_BYTES = 200;

export const perl: RuntimePlugin = {
  name: 'perl',
  fileName: /^(lib)?perl/,
  id: Runtime.PERL,
  map: RUNTIME_MAPS.PERL,
  frameKind: FrameKind.PERL,
  frameType: 'perl',
  detect(elf) {
    const found = detectPerl(elf);
    if (!found) return undefined;
    const { version, layout, hasThreads } = found;
    const facts: Facts = { layout, hasThreads };
    return { runtime: 'perl', version, facts, entry: encode(found) };
  },
  nameFrame(words, facts, memory, cache) {
    const frame = decode(words);
    const { layout, hasThreads } = facts as Facts;
    const objects = new PerlObjects(memory, layout, hasThreads);
    const place = placeOf(objects, frame, cache);
    const plain = UNNAMED[frame.kind];
    if (plain !== undefined) return { name: plain, ...place, column: 0, startLine: 0 };
    const name = nameOf(objects, frame);
    if (typeof name === 'string') return name;
    return { name: textOf(name, place.startLine), ...place, column: 0 };
  },
};

interface Frame {
  kind: number;
  address: number;
  cookie: number;
  statement: number;
  line: number;
}

/** See ebpf/perl/records.h. */
const decode = ({ operand, low, high }: FrameWords): Frame => ({
  address: (operand % ADDRESS) * 8,
  kind: Math.floor(operand / ADDRESS) % KINDS,
  cookie: Math.floor(operand / ADDRESS / KINDS),
  statement: (high * 2 ** 13 + (low >>> 19)) * 8,
  line: low % LINE,
});

type Place = Pick<RuntimeFrame, 'file' | 'line' | 'startLine'>;

/** What was read of a statement, which is freed with its function: then another may stand there. */
interface Known {
  statement: Statement;
  startLine: number;
}

function placeOf(objects: PerlObjects, frame: Frame, cache: NameCache): Place {
  const { line } = frame;
  const statement = objects.statement(frame.statement);
  // that which is being compiled goes on
  const isSame = frame.kind in UNNAMED && frame.address > 0 ? true : statement?.line === line;
  if (!statement || !isSame) return { file: '', line, startLine: 0 };
  const known = cache.get(frame.statement) as Known | undefined;
  if (known?.statement.line === line && known.statement.file === statement.file)
    return { file: statement.file, line, startLine: known.startLine };
  const startLine = frame.kind in UNNAMED ? 0 : firstLine(objects, frame.statement);
  if (!known) cache.bytes += ENTRY_BYTES + 2 * statement.file.length;
  cache.set(frame.statement, { statement, startLine } satisfies Known);
  return { file: statement.file, line, startLine };
}

function nameOf(objects: PerlObjects, { kind, address, cookie }: Frame): PerlName | NameFailure {
  const words = cookieWords(objects, kind, address);
  if (!words) return 'unreadable';
  if (cookieOf(...words) !== cookie) return 'replaced';
  if (kind === PerlKind.GV) return objects.symbolName(address) ?? 'malformed';
  if (kind === PerlKind.CV) return objects.functionName(address) ?? 'malformed';
  const name = objects.hek(address);
  return name === undefined ? 'malformed' : { stash: '', name };
}

/** What ebpf/perl/unwind.h made the cookie of. */
function cookieWords(objects: PerlObjects, kind: number, address: number): [bigint, bigint] | undefined {
  if (kind === PerlKind.LEXICAL) {
    const view = objects.view(address, 8);
    return view && [view.getBigUint64(0, true), 0n];
  }
  const body = objects.word(address);
  if (kind === PerlKind.CV) {
    const view = objects.view(body + XPVCV.name, 8);
    return view && [view.getBigUint64(0, true), 0n];
  }
  const view = objects.view(body + XPVGV.name, 16);
  return view && [view.getBigUint64(0, true), view.getBigUint64(8, true)];
}

/** Must equal perl_cookie() of ebpf/perl/unwind.h. */
const cookieOf = (first: bigint, second: bigint): number => cookieOfBits(5, [first, second]);

/** Functions without a name are told apart by where they begin. */
function textOf({ stash, name }: PerlName, startLine: number): string {
  const own = name === ANONYMOUS && startLine > 0 ? `${ANONYMOUS}:${startLine}` : name;
  return stash === '' ? own : `${stash}::${own}`;
}

function encode(found: PerlBinary): Uint8Array {
  const { layout, functions, access, textBias } = found;
  const entry = Buffer.alloc(PERL.bytes);
  functions.forEach((symbol, i) => {
    if (!symbol) return;
    entry.writeBigUInt64LE(BigInt(symbol.address - textBias), PERL.functions + i * 16);
    entry.writeBigUInt64LE(BigInt(symbol.size), PERL.functions + i * 16 + 8);
  });
  // members of an interpreter are offsets in it
  const bias = access.kind === 'globals' ? textBias : 0;
  const { kind, at } = accessFields(access, textBias);
  entry.writeBigInt64LE(BigInt(at), PERL.at);
  entry.writeBigInt64LE(BigInt(found.operation - bias), PERL.operation);
  entry.writeBigInt64LE(BigInt(found.statement - bias), PERL.statement);
  entry.writeBigInt64LE(BigInt(found.stackInfo - bias), PERL.stackInfo);
  entry.writeBigInt64LE(BigInt(found.compiling.at - bias), PERL.compiling);
  entry.writeUInt32LE(found.compiling.bytes, PERL.compilingBytes);
  entry.writeUInt8(kind, PERL.access);
  entry.writeUInt8(Number(found.isMusl), PERL.isMusl);
  entry.writeUInt8(layout.contextBytes, PERL.contextBytes);
  entry.writeUInt8(layout.contextFunction, PERL.contextCv);
  entry.writeUInt8(layout.contextName, PERL.contextName);
  entry.writeUInt8(layout.stackType, PERL.stackType);
  entry.writeUInt8(Number(access.kind !== 'globals' && access.isSlot), PERL.isSlot);
  return entry;
}

function accessFields(access: PerlBinary['access'], textBias: number): { kind: number; at: number } {
  switch (access.kind) {
    case 'key':
      return { kind: PerlAccess.KEY, at: access.address - textBias };
    case 'pointer':
      return { kind: PerlAccess.POINTER, at: access.address - textBias };
    case 'globals':
      return { kind: PerlAccess.GLOBALS, at: 0 };
  }
}
