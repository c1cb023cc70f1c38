/** Stack deltas to the table image that the kernel side searches: the layout is described in ebpf/records.h. */

import { lastAtOrBelow } from '../../../common/base/search.ts';
import { PF_X, PT_LOAD, type Segment } from '../../../common/elf/elf.ts';
import { EF_BLOCK_BITS, EF_PAGE_BITS, PAGE, RULE } from '../../records/records.gen.ts';
import type { Rule } from '../rules/rules.ts';
import { MAX_IMAGE_BYTES, TableTooLarge } from '../rules/table-limits.ts';
import type { StackDeltas } from '../stack-deltas.ts';

const BLOCK_BYTES = 1 << EF_BLOCK_BITS;
const BLOCK_ROWS = BLOCK_BYTES / 4;
const PAGE_BYTES = 1 << EF_PAGE_BITS;
/** 4 GiB of code. */
export const MAX_PAGES = 1 << 20;

export interface PackedTable {
  /** Whole blocks. */
  image: Uint8Array;
  firstPage: number;
  pageCount: number;
  rulesAt: number;
  rowsAt: number;
  rowCount: number;
  ruleCount: number;
}

/** One page's rows, sorted, in the order of file offsets. */
class RowWriter {
  rows: Uint32Array<ArrayBuffer>;
  count = 0;

  /** `expected` rows, some less than what blocks that are not full will take. */
  constructor(expected: number) {
    this.rows = new Uint32Array(Math.min(BLOCK_ROWS + Math.ceil(expected * 1.1), MAX_IMAGE_BYTES / 4));
  }

  /** Leaves room so that `n` rows lie in one block, counted from the start of the image. */
  reserve(n: number, rowsBefore: number): void {
    const inBlock = (rowsBefore + this.count) % BLOCK_ROWS;
    if (inBlock + n > BLOCK_ROWS) this.count += BLOCK_ROWS - inBlock;
    while (this.count + n > this.rows.length) {
      const larger = new Uint32Array(this.rows.length * 2);
      larger.set(this.rows);
      this.rows = larger;
    }
    if (this.count + n > MAX_IMAGE_BYTES / 4) throw new TableTooLarge(`it has more than ${this.count} rows`);
  }
}

/** Undefined where the deltas say nothing about any executable segment; throws {@link TableTooLarge}. */
export function packTable(deltas: StackDeltas, segments: readonly Segment[]): PackedTable | undefined {
  const code = segments
    .filter((s) => s.type === PT_LOAD && s.flags & PF_X && s.filesz > 0)
    .sort((a, b) => a.offset - b.offset);
  if (deltas.addresses.length === 0 || code.length === 0) return undefined;
  const firstPage = Math.floor(Math.min(...code.map((s) => s.offset)) / PAGE_BYTES);
  const lastPage = Math.floor((Math.max(...code.map((s) => s.offset + s.filesz)) - 1) / PAGE_BYTES);
  const pageCount = lastPage - firstPage + 1;
  const pages = code.reduce((sum, s) => sum + s.filesz / PAGE_BYTES + 2, 0);
  // BPF counts pages in 32 bits
  if (lastPage > 0xffff_ffff) throw new TableTooLarge(`its code lies at page ${lastPage} of the file`);
  if (Math.max(pageCount, pages) > MAX_PAGES) throw new TableTooLarge(`its code spans ${pageCount} pages`);
  const rulesAt = align(pageCount * PAGE.bytes, RULE.bytes);
  const rowsAt = rulesAt + deltas.rules.length * RULE.bytes;
  const directory = new Uint32Array(pageCount * 2);
  const writer = new RowWriter(deltas.addresses.length + pages);
  for (const segment of code)
    packSegment(deltas, segment, { directory, firstPage, rowsBefore: rowsAt / 4 }, writer);
  const image = new Uint8Array(align(rowsAt + writer.count * 4, BLOCK_BYTES));
  image.set(new Uint8Array(directory.buffer));
  writeRules(new DataView(image.buffer, rulesAt), deltas.rules);
  image.set(new Uint8Array(writer.rows.buffer, 0, writer.count * 4), rowsAt);
  return {
    image,
    firstPage,
    pageCount,
    rulesAt,
    rowsAt,
    rowCount: writer.count,
    ruleCount: deltas.rules.length,
  };
}

const align = (value: number, to: number): number => Math.ceil(value / to) * to;

interface Directory {
  directory: Uint32Array;
  firstPage: number;
  rowsBefore: number;
}

/** Each page begins with a row at offset 0: the rule that is in force where it starts. */
function packSegment(deltas: StackDeltas, segment: Segment, target: Directory, writer: RowWriter): void {
  const { addresses, ruleIds } = deltas;
  const end = segment.offset + segment.filesz;
  for (let page = Math.floor(segment.offset / PAGE_BYTES); page * PAGE_BYTES < end; page++) {
    const from = segment.vaddr + (page * PAGE_BYTES - segment.offset);
    const slot = (page - target.firstPage) * 2;
    // two segments may share the page in which one ends and the other begins
    if (target.directory[slot + 1] !== 0 || from < segment.vaddr) {
      mergePage(deltas, segment, page, target, writer);
      continue;
    }
    let i = lastAtOrBelow(addresses, from);
    const rule = i < 0 ? 0 : ruleIds[i]!;
    const last = lastAtOrBelow(addresses, from + PAGE_BYTES - 1);
    if (last === i && rule === 0) continue;
    writer.reserve(last - i + 1, target.rowsBefore);
    target.directory[slot] = writer.count;
    target.directory[slot + 1] = last - i + 1;
    writer.rows[writer.count++] = rule * 65536;
    for (i++; i <= last; i++) writer.rows[writer.count++] = ruleIds[i]! * 65536 + (addresses[i]! - from);
  }
}

/** Adds this segment's part of a page to what an earlier segment has put there. */
function mergePage(
  deltas: StackDeltas,
  segment: Segment,
  page: number,
  target: Directory,
  writer: RowWriter,
): void {
  const slot = (page - target.firstPage) * 2;
  const base = segment.vaddr + (page * PAGE_BYTES - segment.offset);
  const from = Math.max(base, segment.vaddr);
  const old = target.directory[slot]!;
  const kept = [...writer.rows.subarray(old, old + target.directory[slot + 1]!)].filter(
    (row) => row % 65536 < from - base,
  );
  if (kept.length === 0 && from > base) kept.push(0);
  const i = lastAtOrBelow(deltas.addresses, from);
  const last = lastAtOrBelow(deltas.addresses, base + PAGE_BYTES - 1);
  kept.push((i < 0 ? 0 : deltas.ruleIds[i]!) * 65536 + (from - base));
  for (let r = i + 1; r <= last; r++) kept.push(deltas.ruleIds[r]! * 65536 + (deltas.addresses[r]! - base));
  writer.reserve(kept.length, target.rowsBefore);
  target.directory[slot] = writer.count;
  target.directory[slot + 1] = kept.length;
  for (const row of kept) writer.rows[writer.count++] = row;
}

function writeRules(view: DataView, rules: readonly Rule[]): void {
  for (const [i, rule] of rules.entries()) {
    const at = i * RULE.bytes;
    view.setUint8(at + RULE.kind, rule.kind);
    view.setUint8(at + RULE.cfaReg, rule.cfaReg);
    view.setUint8(at + RULE.fpKind, rule.fpKind);
    view.setUint8(at + RULE.raKind, rule.raKind);
    view.setInt32(at + RULE.cfaOffset, rule.cfaOffset, true);
    view.setInt32(at + RULE.cfaOffset2, rule.cfaOffset2, true);
    view.setInt16(at + RULE.fpOffset, rule.fpOffset, true);
    view.setInt16(at + RULE.raOffset, rule.raOffset, true);
  }
}

/** Bytes of one rule in the image, as BPF finds it by a file offset: the twin of find_rule() in ebpf/table.h. */
export function findPackedRule(table: PackedTable, fileOffset: number): number {
  const view = new DataView(table.image.buffer, table.image.byteOffset, table.image.byteLength);
  const page = Math.floor(fileOffset / PAGE_BYTES) - table.firstPage;
  if (page < 0 || page >= table.pageCount) return 0;
  const count = view.getUint32(page * PAGE.bytes + PAGE.rows, true) & 0xffff;
  if (count === 0) return 0;
  const base = table.rowsAt + view.getUint32(page * PAGE.bytes + PAGE.firstRow, true) * 4;
  if (base >> EF_BLOCK_BITS !== (base + count * 4 - 4) >> EF_BLOCK_BITS)
    throw new Error('rows of a page straddle blocks');
  let begin = 0;
  let end = count;
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if ((view.getUint32(base + middle * 4, true) & 0xfff) <= fileOffset % PAGE_BYTES) begin = middle + 1;
    else end = middle;
  }
  return view.getUint32(base + (begin - 1) * 4, true) >>> 16;
}
