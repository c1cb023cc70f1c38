/**
 * Whether a packed table is one that packTable() could have made: everything that find_rule() (ebpf/table.h) and the
 * unwinder rely on. BPF never reads outside its maps whatever the table says, but rows that are out of order, or lie in
 * two blocks, would silently be others.
 */
import type { Machine } from '../../../common/elf/elf.ts';
import {
  EF_BLOCK_BITS,
  EF_PAGE_BITS,
  EF_RULE_INTERRUPTED,
  PAGE,
  RULE,
  RuleKind,
  ValueKind,
} from '../../records/records.gen.ts';
import { MAX_RULES } from '../rules/rules.ts';
import { MAX_IMAGE_BYTES } from '../rules/table-limits.ts';
import { MAX_PAGES, type PackedTable } from './pack.ts';

const BLOCK_BYTES = 1 << EF_BLOCK_BITS;
const PAGE_BYTES = 1 << EF_PAGE_BITS;

/** What is wrong with it, '' if nothing is. */
export function checkTable(table: PackedTable, machine: Machine): string {
  return checkLayout(table) || checkRules(table, machine) || checkPages(table);
}

function checkLayout({
  image,
  firstPage,
  pageCount,
  rulesAt,
  rowsAt,
  rowCount,
  ruleCount,
}: PackedTable): string {
  const counts = [firstPage, pageCount, rulesAt, rowsAt, rowCount, ruleCount];
  if (!counts.every((n) => Number.isSafeInteger(n) && n >= 0 && n <= 0xffff_ffff)) return 'a count is none';
  if (image.length === 0 || image.length % BLOCK_BYTES !== 0)
    return `${image.length} bytes are not whole blocks`;
  if (pageCount === 0 || pageCount > MAX_PAGES) return `${pageCount} pages`;
  if (ruleCount === 0 || ruleCount > MAX_RULES) return `${ruleCount} rules`;
  if (rowCount > MAX_IMAGE_BYTES / 4) return `${rowCount} rows`;
  if (rulesAt % RULE.bytes !== 0 || rulesAt < pageCount * PAGE.bytes) return 'the rules lie in the directory';
  if (rowsAt !== rulesAt + ruleCount * RULE.bytes) return 'the rows do not follow the rules';
  return rowsAt + rowCount * 4 > image.length ? 'the rows reach past the end' : '';
}

const viewOf = ({ image }: PackedTable): DataView =>
  new DataView(image.buffer, image.byteOffset, image.byteLength);

function checkRules(table: PackedTable, machine: Machine): string {
  const view = viewOf(table);
  const isX86 = machine === 'x86_64';
  const lastRegister = isX86 ? 15 : 31;
  const lastValue: number = ValueKind.STACK;
  if (view.getUint8(table.rulesAt + RULE.kind) !== RuleKind.INVALID) return 'rule 0 says something';
  for (let i = 0; i < table.ruleCount; i++) {
    const at = table.rulesAt + i * RULE.bytes;
    const kind = view.getUint8(at + RULE.kind);
    const raKind = view.getUint8(at + RULE.raKind);
    const raOffset = view.getInt16(at + RULE.raOffset, true);
    if (kind > RuleKind.UNKNOWN || kind === (isX86 ? RuleKind.CFA_VG : RuleKind.PLT))
      return `a rule of kind ${kind}`;
    if ((view.getUint8(at + RULE.cfaReg) & ~EF_RULE_INTERRUPTED) > lastRegister)
      return 'a rule with an unknown register';
    if (Math.max(view.getUint8(at + RULE.fpKind), raKind) > lastValue) return 'a rule with an unknown value';
    if (raKind === ValueKind.REGISTER && !(raOffset >= 0 && raOffset <= lastRegister))
      return 'a return address in an unknown register';
  }
  return '';
}

function checkPages(table: PackedTable): string {
  const view = viewOf(table);
  for (let page = 0; page < table.pageCount; page++) {
    const at = page * PAGE.bytes;
    const firstRow = view.getUint32(at + PAGE.firstRow, true);
    const rows = view.getUint32(at + PAGE.rows, true);
    if (rows === 0) continue;
    if (rows > PAGE_BYTES || firstRow + rows > table.rowCount) return 'a page with rows that are not there';
    const begin = table.rowsAt + firstRow * 4;
    if (begin >>> EF_BLOCK_BITS !== (begin + rows * 4 - 4) >>> EF_BLOCK_BITS)
      return 'rows of one page in two blocks';
    let previous = -1;
    for (let i = 0; i < rows; i++) {
      const row = view.getUint32(begin + i * 4, true);
      const low = row & 0xffff;
      if (i === 0 ? low !== 0 : low <= previous) return 'rows out of order';
      if (low >= PAGE_BYTES || row >>> 16 >= table.ruleCount) return 'a row that is none';
      previous = low;
    }
  }
  return '';
}
