/** Instruction sequences: what a method, a block or a file is called, and the line of an instruction in it (iseq.c, succinct table). */
import type { NameFailure } from '../contract.ts';
import {
  BODY,
  BODY_BYTES,
  ISEQ_BODY,
  parentIseq,
  type RubyLayout,
  TYPE_EVAL,
  TYPE_METHOD,
} from './layout.ts';
import { type RubyObjects, wordAt } from './objects.ts';

export interface Iseq {
  body: number;
  /** `block in price`. */
  label: string;
  /** `price`. */
  baseLabel: string;
  file: string;
  firstLine: number;
  /** Its code, or that of the method around a block. */
  isOfMethod: boolean;
}

const IMEMO_ISEQ = 7;
const MAX_NAME = 512;
const MAX_FILE = 4096;
const MAX_LINES = 1 << 24;
/** In one another. */
const MAX_EVALS = 8;
/** The table of positions: 54 of them in six words, 9 of 7 bits each; then blocks of 512. */
const FIRST = 54;
const BLOCK_BYTES = 80;
const BLOCKS_AT = 48;

/** `isSame` says whether it is still the one that BPF saw, by its body and its label. */
export function readIseq(
  objects: RubyObjects,
  layout: RubyLayout,
  address: number,
  isSame: (body: DataView, at: number) => boolean,
): Iseq | NameFailure {
  const at = objects.word(address + ISEQ_BODY);
  const body = objects.view(at, BODY_BYTES);
  if (!body) return 'unreadable';
  if (!objects.isImemo(address, IMEMO_ISEQ) || !isSame(body, at)) return 'replaced';
  const named = bodyWithName(objects, layout, body);
  const label = objects.string(wordAt(named, BODY.label), MAX_NAME);
  const baseLabel = objects.string(wordAt(named, BODY.baseLabel), MAX_NAME);
  const file = fileOf(objects, wordAt(body, BODY.file));
  if (label === undefined || baseLabel === undefined || file === undefined) return 'malformed';
  const first = body.getUint32(BODY.firstLine, true);
  const local = objects.word(wordAt(body, layout.localIseq) + ISEQ_BODY);
  return {
    body: at,
    label,
    baseLabel,
    file,
    // a number of Ruby's is twice as large, and one
    firstLine: layout.hasPlainFirstLine ? first : first >>> 1,
    isOfMethod: objects.half(local + BODY.type) === TYPE_METHOD,
  };
}

/** Code that `eval` was given is called as what is around it; by itself it is `<compiled>` from 3.4 on. */
function bodyWithName(objects: RubyObjects, layout: RubyLayout, body: DataView): DataView {
  let named = body;
  for (let i = 0; i < MAX_EVALS && named.getUint32(BODY.type, true) === TYPE_EVAL; i++) {
    const around = objects.view(objects.word(wordAt(named, parentIseq(layout)) + ISEQ_BODY), BODY_BYTES);
    if (!around) break;
    named = around;
  }
  return named;
}

/** A path, or a path and where it leads to in the end, which `eval` has none of. */
function fileOf(objects: RubyObjects, path: number): string | undefined {
  const plain = objects.string(path, MAX_FILE);
  if (plain !== undefined) return plain;
  const [short, real] = [objects.element(path, 0), objects.element(path, 1)];
  return objects.string(real ?? 0, MAX_FILE) ?? objects.string(short ?? 0, MAX_FILE);
}

/** The line of the instruction before `position`, which is that of the next one; 0 where it is not known. */
export function lineOf(objects: RubyObjects, layout: RubyLayout, iseq: number, position: number): number {
  const count = objects.half(iseq + layout.lineCount) ?? 0;
  if (count === 0 || count > MAX_LINES) return 0;
  const at = position > 0 ? position - 1 : 0;
  const index = count === 1 ? 1 : rankOf(objects, objects.word(iseq + layout.lineIndex), at);
  if (index < 1 || index > count) return 0;
  return objects.half(objects.word(iseq + layout.lines) + (index - 1) * layout.lineBytes) ?? 0;
}

/** How many entries begin at or before that position. */
function rankOf(objects: RubyObjects, table: number, position: number): number {
  if (position < FIRST) {
    const word = objects.view(table + Math.floor(position / 9) * 8, 8);
    return word ? bitsOf(word, 0, (position % 9) * 7, 7) : 0;
  }
  const bit = (position - FIRST) % 512;
  const block = objects.view(
    table + BLOCKS_AT + Math.floor((position - FIRST) / 512) * BLOCK_BYTES,
    BLOCK_BYTES,
  );
  if (!block) return 0;
  const small = Math.floor(bit / 64);
  const before = small === 0 ? 0 : bitsOf(block, 8, (small - 1) * 9, 9);
  return block.getUint32(0, true) + before + onesUpTo(block.getBigUint64(16 + small * 8, true), bit % 64);
}

const bitsOf = (view: DataView, at: number, from: number, count: number): number =>
  Number((view.getBigUint64(at, true) >> BigInt(from)) & ((1n << BigInt(count)) - 1n));

function onesUpTo(word: bigint, bit: number): number {
  let ones = 0;
  for (let rest = word & ((2n << BigInt(bit)) - 1n); rest > 0n; rest &= rest - 1n) ones++;
  return ones;
}
