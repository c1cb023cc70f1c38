/**
 * What binutils' readelf says of a file's frame sections: rows of each FDE, as `--debug-dump=frames-interp` prints
 * them. Its output can have a gigabyte, so it is read line by line, and rows are kept as columns of numbers: an
 * address, and which of the file's few thousand distinct texts stands there.
 */
import { spawn } from 'node:child_process';
import { ExpressionReader } from './readelf-expressions.ts';

/** One distinct row, less its address. */
export interface ReadelfRule {
  /** `rsp+8`; `exp` for an expression. */
  cfa: string;
  /** `c-16` saved there, `u` not said or undefined, `s` the same, `exp`, `vexp`, `v+8`, a register; by column name. */
  registers: ReadonlyMap<string, string>;
  isSignal: boolean;
  /** Number of the column that is called ra. */
  returnColumn: number;
  /** What stands behind `exp`: of the CFA, and of where frame pointer and return address are saved. */
  expressions: { cfa?: string | undefined; fp?: string | undefined; ra?: string | undefined };
}

/** FDEs in the order of the file; FDE i has rows firstRow[i] … firstRow[i + 1], the last one to the end. */
export class ReadelfFrames {
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly firstRow: number[] = [];
  readonly addresses: number[] = [];
  readonly ruleIds: number[] = [];
  readonly rules: ReadelfRule[] = [];
}

export interface ReadelfSections {
  ehFrame: ReadelfFrames;
  debugFrame: ReadelfFrames;
}

interface Cie {
  isSignal: boolean;
  returnColumn: number;
  ruleId: number;
}

const FDE = /^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)/;
const CIE = /^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE "([^"]*)".* ra=(\d+)/;
const ROW_ADDRESS_DIGITS = 16;
const hex = (text: string): number => Number.parseInt(text, 16);
const isHexDigit = (code: number): boolean => (code >= 48 && code <= 57) || (code >= 97 && code <= 102);

/** Rejects if readelf can't be run; that it warns of a file is not a failure. */
export async function readelfFrames(path: string): Promise<ReadelfSections> {
  const reader = new Reader();
  await readLines(path, 'frames-interp', (line) => reader.line(line));
  reader.finish();
  const { ehFrame, debugFrame } = reader;
  if (ehFrame.rules.some(hasExpression)) await addExpressions(path, ehFrame);
  return { ehFrame, debugFrame };
}

async function readLines(path: string, what: string, onLine: (line: string) => void): Promise<void> {
  const child = spawn('readelf', ['-W', `--debug-dump=${what},no-follow-links`, path], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const failure = new Promise<never>((_resolve, reject) => child.once('error', reject));
  failure.catch(() => {});
  let rest = '';
  child.stdout.setEncoding('latin1');
  for await (const chunk of child.stdout) {
    const lines = (rest + (chunk as string)).split('\n');
    rest = lines.pop()!;
    for (const line of lines) onLine(line);
  }
  await Promise.race([failure, Promise.resolve()]);
}

/** By the names of the columns that a rule may need. */
const FRAME_POINTERS: Readonly<Record<string, number>> = { rbp: 6, x29: 29 };
const isExpression = (rule: ReadelfRule, column: string): boolean => rule.registers.get(column) === 'exp';
const hasExpression = (rule: ReadelfRule): boolean =>
  rule.cfa === 'exp' || ['ra', ...Object.keys(FRAME_POINTERS)].some((column) => isExpression(rule, column));

/** Gives each row whose rule has expressions a rule with their texts. */
async function addExpressions(path: string, frames: ReadelfFrames): Promise<void> {
  const reader = new ExpressionReader();
  let isEhFrame = false;
  await readLines(path, 'frames', (line) => {
    if (line.startsWith('Contents of the ')) isEhFrame = line.includes(' .eh_frame section');
    else if (isEhFrame) reader.line(line);
  });
  const { firstRow, addresses, ruleIds, rules } = frames;
  const needsTexts = rules.map(hasExpression);
  const ids = new Map<string, number>();
  for (const [fde, first] of firstRow.entries()) {
    const end = firstRow[fde + 1] ?? addresses.length;
    for (let row = first; row < end; row++) {
      const id = ruleIds[row]!;
      if (!needsTexts[id]) continue;
      const { cfa, registers } = reader.at(fde, addresses[row]!);
      const rule = rules[id]!;
      const [fp] = Object.entries(FRAME_POINTERS).find(([column]) => isExpression(rule, column)) ?? [];
      const expressions = {
        cfa,
        fp: fp && registers.get(FRAME_POINTERS[fp]!),
        ra: isExpression(rule, 'ra') ? registers.get(rule.returnColumn) : undefined,
      };
      const key = `${id} ${expressions.cfa} ${expressions.fp} ${expressions.ra}`;
      let known = ids.get(key);
      if (known === undefined) {
        known = rules.push({ ...rule, expressions }) - 1;
        ids.set(key, known);
      }
      ruleIds[row] = known;
    }
  }
}

class Reader {
  readonly ehFrame = new ReadelfFrames();
  readonly debugFrame = new ReadelfFrames();
  #frames: ReadelfFrames | undefined;
  #cies = new Map<string, Cie>();
  #cie: Cie | undefined;
  #inFde = false;
  #columns = '';
  /** Rule ids by flag, columns and text of a row. */
  #ids = new Map<string, number>();

  line(line: string): void {
    const first = line.charCodeAt(0);
    if (isHexDigit(first) && this.#frames) {
      if (line.charCodeAt(ROW_ADDRESS_DIGITS) === 32 && line[ROW_ADDRESS_DIGITS + 1] !== '0') this.#row(line);
      else this.#record(line);
    } else if (line.startsWith('   LOC')) this.#columns = line;
    else if (line.startsWith('Contents of the ')) this.#section(line);
  }

  finish(): void {
    this.#closeFde();
  }

  #section(line: string): void {
    this.#closeFde();
    this.#cies = new Map();
    this.#ids = new Map();
    if (line.includes(' .eh_frame section')) this.#frames = this.ehFrame;
    else this.#frames = / \.z?debug_frame section/.test(line) ? this.debugFrame : undefined;
  }

  #record(line: string): void {
    const cie = CIE.exec(line);
    const fde = cie ? null : FDE.exec(line);
    if (!cie && !fde) return;
    this.#closeFde();
    if (cie) {
      this.#cie = { isSignal: cie[2]!.includes('S'), returnColumn: Number(cie[3]), ruleId: -1 };
      this.#cies.set(cie[1]!, this.#cie);
    } else if (fde) {
      this.#cie = this.#cies.get(fde[1]!);
      const frames = this.#frames!;
      frames.starts.push(hex(fde[2]!));
      frames.ends.push(hex(fde[3]!));
      frames.firstRow.push(frames.addresses.length);
      this.#inFde = true;
    }
  }

  /** An FDE without instructions is printed without rows: that of its CIE holds. */
  #closeFde(): void {
    if (!this.#inFde) return;
    this.#inFde = false;
    const { starts, firstRow, addresses, ruleIds } = this.#frames!;
    if (firstRow.at(-1) !== addresses.length) return;
    addresses.push(starts.at(-1)!);
    ruleIds.push(this.#cie && this.#cie.ruleId >= 0 ? this.#cie.ruleId : this.#ruleId('', undefined));
  }

  #row(line: string): void {
    const id = this.#ruleId(line.slice(ROW_ADDRESS_DIGITS), this.#cie);
    if (this.#inFde) {
      this.#frames!.addresses.push(hex(line.slice(0, ROW_ADDRESS_DIGITS)));
      this.#frames!.ruleIds.push(id);
    } else if (this.#cie) this.#cie.ruleId = id;
  }

  #ruleId(text: string, cie: Cie | undefined): number {
    const { isSignal = false, returnColumn = 0 } = cie ?? {};
    const key = `${isSignal ? 'S' : ''}${returnColumn}${this.#columns}\n${text}`;
    let id = this.#ids.get(key);
    if (id === undefined) {
      id =
        this.#frames!.rules.push({
          ...parseRule(text, this.#columns),
          isSignal,
          returnColumn,
          expressions: {},
        }) - 1;
      this.#ids.set(key, id);
    }
    return id;
  }
}

function parseRule(text: string, columnLine: string): Pick<ReadelfRule, 'cfa' | 'registers'> {
  // a register is printed with its number first: r1 (rdx)
  const split = (line: string): string[] =>
    line
      .trim()
      .replace(/\S+ \((\w+)\)/g, '$1')
      .split(/\s+/);
  const [cfa, ...values] = split(text);
  const columns = split(columnLine).slice(2);
  const registers = new Map(values.map((value, i) => [columns[i] ?? '', value]));
  return { cfa: cfa ?? '', registers };
}
