/** CRuby 2.7 and later: docs/interpreters/ruby.md. */
import {
  FrameKind,
  RUBY,
  RUNTIME_MAPS,
  RubyAccess,
  RubyPosition,
  Runtime,
} from '../../records/records.gen.ts';
import type { FrameWords, NameCache, NameFailure, RuntimeFrame, RuntimePlugin } from '../contract.ts';
import { cookieOfBits } from '../cookie.ts';
import { detectRuby, type RubyBinary } from './detect-ruby.ts';
import { type Iseq, lineOf, readIseq } from './iseq.ts';
import { BODY, ENTRY, type RubyLayout } from './layout.ts';
import { classPrefix, methodName } from './methods.ts';
import { RubyObjects } from './objects.ts';

interface Facts {
  layout: RubyLayout;
  /** global_symbols: its ELF address less the difference between address and offset of the code. */
  symbols: number | undefined;
}

/** What was read, and which one it was. */
interface Known<T> {
  cookie: number;
  value: T;
}

const ENTRY_BYTES = 200;
const ADDRESS = 2 ** 45;
const POSITION = 2 ** 19;
const GARBAGE_COLLECTION = '(garbage collection)';

export const ruby: RuntimePlugin = {
  name: 'ruby',
  fileName: /^(lib)?ruby/,
  id: Runtime.RUBY,
  map: RUNTIME_MAPS.RUBY,
  frameKind: FrameKind.RUBY,
  frameType: 'ruby',
  detect(elf) {
    const found = detectRuby(elf);
    if (!found) return undefined;
    const { version, layout, symbols, textBias } = found;
    const facts: Facts = { layout, symbols: symbols === undefined ? undefined : symbols - textBias };
    return { runtime: 'ruby', version, facts, entry: encode(found) };
  },
  nameFrame(words, facts, memory, cache, baseOf) {
    const frame = decode(words);
    if (frame.iseq === 0 && frame.entry === 0) return plain(GARBAGE_COLLECTION);
    const { layout, symbols } = facts as Facts;
    const objects = new RubyObjects(memory, layout);
    if (frame.position !== RubyPosition.C) return nameIseq({ objects, layout, cache }, frame);
    const base = symbols === undefined ? undefined : baseOf?.();
    return nameFunction({ objects, layout, cache }, frame, base === undefined ? 0 : base + symbols!);
  },
};

interface Reading {
  objects: RubyObjects;
  layout: RubyLayout;
  cache: NameCache;
}

interface Frame {
  iseq: number;
  cookie: number;
  entry: number;
  position: number;
}

/** See ebpf/ruby/records.h. */
const decode = ({ operand, low, high }: FrameWords): Frame => ({
  iseq: (operand % ADDRESS) * 8,
  cookie: Math.floor(operand / ADDRESS),
  entry: (high * 2 ** 13 + (low >>> 19)) * 8,
  position: low % POSITION,
});

const plain = (name: string): RuntimeFrame => ({ name, file: '', line: 0, column: 0, startLine: 0 });

function remembered<T extends { length?: number }>(
  cache: NameCache,
  { key, cookie }: { key: number; cookie: number },
  read: () => T | NameFailure,
): T | NameFailure {
  const known = cache.get(key) as Known<T> | undefined;
  if (known?.cookie === cookie) return known.value;
  const value = read();
  if (value === 'unreadable' || value === 'replaced' || value === 'malformed') return value;
  if (!known) cache.bytes += ENTRY_BYTES;
  cache.set(key, { cookie, value });
  return value;
}

function nameIseq({ objects, layout, cache }: Reading, frame: Frame): RuntimeFrame | NameFailure {
  const isSame = (body: DataView, at: number): boolean =>
    cookieOf(BigInt(at), body.getBigUint64(BODY.label, true)) === frame.cookie;
  const iseq = remembered<Iseq & { length?: number }>(cache, { key: frame.iseq, cookie: frame.cookie }, () =>
    readIseq(objects, layout, frame.iseq, isSame),
  );
  if (typeof iseq === 'string') return iseq;
  const line =
    frame.position === RubyPosition.UNKNOWN ? 0 : lineOf(objects, layout, iseq.body, frame.position);
  const prefix = iseq.isOfMethod && frame.entry > 0 ? classPrefix(objects, layout, frame.entry) : '';
  return {
    name: qualified(iseq, prefix),
    file: iseq.file,
    line: line || iseq.firstLine,
    column: 0,
    startLine: iseq.firstLine,
  };
}

/** `block in Alpha#price`. */
function qualified({ label, baseLabel }: Iseq, prefix: string): string {
  if (prefix === '' || !label.endsWith(baseLabel)) return label;
  return `${label.slice(0, label.length - baseLabel.length)}${prefix}${baseLabel}`;
}

function nameFunction(
  { objects, layout, cache }: Reading,
  { entry, cookie }: Frame,
  symbols: number,
): RuntimeFrame | NameFailure {
  const name = remembered<string>(cache, { key: entry, cookie }, () => {
    const view = objects.view(entry, ENTRY.owner + 8);
    if (!view) return 'unreadable';
    if (cookieOf(view.getBigUint64(ENTRY.definition, true), 0n) !== cookie) return 'replaced';
    const own = symbols > 0 ? methodName(objects, layout, { entry, symbols }) : undefined;
    return own === undefined ? 'malformed' : `${classPrefix(objects, layout, entry)}${own}`;
  });
  const isFailure = name === 'unreadable' || name === 'replaced' || name === 'malformed';
  return isFailure ? (name as NameFailure) : plain(name);
}

/** Must equal ruby_cookie() of ebpf/ruby/unwind.h. */
const cookieOf = (first: bigint, second: bigint): number => cookieOfBits(8, [first, second]);

function encode({ layout, loop, core, access, collector, textBias, isMusl }: RubyBinary): Uint8Array {
  const entry = Buffer.alloc(RUBY.bytes);
  const range = (at: number, { start, end }: { start: number; end: number }): void => {
    entry.writeBigUInt64LE(BigInt(start - textBias), at);
    entry.writeBigUInt64LE(BigInt(end - start), at + 8);
  };
  range(RUBY.loopStart, loop);
  if (core) range(RUBY.coreStart, core);
  const [kind, at, add] = accessFields(access, textBias);
  entry.writeBigInt64LE(BigInt(at), RUBY.at);
  entry.writeInt32LE(add, RUBY.add);
  entry.writeUInt8(kind, RUBY.access);
  entry.writeUInt8(Number(isMusl), RUBY.isMusl);
  entry.writeUInt8(layout.frameBytes, RUBY.frameBytes);
  entry.writeUInt8(Number(layout.classes !== undefined), RUBY.hasClasses);
  entry.writeUInt8(layout.contextThread, RUBY.contextThread);
  entry.writeUInt8(layout.threadMachine, RUBY.threadMachine);
  entry.writeUInt16LE(layout.threadId, RUBY.threadId);
  entry.writeUInt16LE(collector?.space ?? 0, RUBY.collector);
  entry.writeUInt16LE(collector?.flags ?? 0, RUBY.collectorFlags);
  return entry;
}

function accessFields(
  access: RubyBinary['access'],
  textBias: number,
): [kind: number, at: number, add: number] {
  switch (access.kind) {
    case 'global':
      return [RubyAccess.GLOBAL, access.address - textBias, 0];
    case 'offset':
      return [RubyAccess.OFFSET, access.offset, 0];
    case 'module':
      return [RubyAccess.MODULE, access.slot - textBias, access.add];
    case 'descriptor':
      return [RubyAccess.DESCRIPTOR, access.got - textBias, access.add];
  }
}
