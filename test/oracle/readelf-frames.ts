/** What binutils' readelf says of a file's frame sections: rows of each FDE, as `--debug-dump=frames-interp` prints them. */
import { spawnSync } from 'node:child_process';

export interface ReadelfRow {
  address: number;
  /** `rsp+8`; `exp` for an expression. */
  cfa: string;
  /** `c-16` saved there, `u` not said or undefined, `s` the same, `exp`, `vexp`, `v+8`, a register; by column name. */
  registers: ReadonlyMap<string, string>;
}

export interface ReadelfFde {
  start: number;
  end: number;
  isSignal: boolean;
  rows: ReadelfRow[];
}

interface ReadelfCie {
  isSignal: boolean;
  row: ReadelfRow | undefined;
}

const MAX_OUTPUT = 512 << 20;
const FDE = /^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)/;
const CIE = /^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE "([^"]*)"/;
const hex = (text: string): number => Number.parseInt(text, 16);

/** FDEs of .eh_frame and .debug_frame, in the order of the file. */
export function readelfFrames(path: string): { ehFrame: ReadelfFde[]; debugFrame: ReadelfFde[] } {
  // its exit code is not 0 after mere warnings
  const { stdout: output } = spawnSync(
    'readelf',
    ['-W', '--debug-dump=frames-interp,no-follow-links', path],
    {
      encoding: 'latin1',
      maxBuffer: MAX_OUTPUT,
    },
  );
  const sections = { ehFrame: [] as ReadelfFde[], debugFrame: [] as ReadelfFde[] };
  for (const content of output.split('Contents of the ').slice(1)) {
    if (content.startsWith('.eh_frame section')) sections.ehFrame = parseSection(content);
    else if (/^\.z?debug_frame section/.test(content)) sections.debugFrame = parseSection(content);
  }
  return sections;
}

function parseSection(content: string): ReadelfFde[] {
  const fdes: ReadelfFde[] = [];
  const cies = new Map<string, ReadelfCie>();
  const cieOf = new Map<ReadelfFde, ReadelfCie | undefined>();
  let cie: ReadelfCie | undefined;
  let fde: ReadelfFde | undefined;
  let columns: string[] = [];
  for (const line of content.split('\n')) {
    const isRecord = line.includes('IE "') || line.includes(' FDE ');
    const cieMatch = isRecord && CIE.exec(line);
    const fdeMatch = isRecord && !cieMatch && FDE.exec(line);
    if (cieMatch) {
      cie = { isSignal: cieMatch[2]!.includes('S'), row: undefined };
      cies.set(cieMatch[1]!, cie);
      fde = undefined;
    } else if (fdeMatch) {
      cie = cies.get(fdeMatch[1]!);
      fde = { start: hex(fdeMatch[2]!), end: hex(fdeMatch[3]!), isSignal: cie?.isSignal ?? false, rows: [] };
      fdes.push(fde);
      cieOf.set(fde, cie);
    } else if (line.startsWith('   LOC')) {
      columns = line.trim().split(/\s+/);
    } else if (/^[0-9a-f]{16} /.test(line)) {
      const row = parseRow(line, columns);
      if (fde) fde.rows.push(row);
      else if (cie) cie.row = row;
    }
  }
  for (const each of fdes) finishFde(each, cieOf.get(each));
  return fdes;
}

/** An FDE without instructions is printed without rows: that of its CIE holds. */
function finishFde(fde: ReadelfFde, cie: ReadelfCie | undefined): void {
  if (fde.rows.length === 0 && cie?.row) fde.rows.push({ ...cie.row, address: fde.start });
}

function parseRow(line: string, columns: readonly string[]): ReadelfRow {
  // a register is printed with its number first: r1 (rdx)
  const fields = line
    .trim()
    .replace(/\S+ \((\w+)\)/g, '$1')
    .split(/\s+/);
  const registers = new Map<string, string>();
  for (let i = 2; i < fields.length; i++) registers.set(columns[i] ?? '', fields[i]!);
  return { address: hex(fields[0]!), cfa: fields[1]!, registers };
}
