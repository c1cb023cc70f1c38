/** What the comparison of many files comes to, as a page of documentation. */
import type { FileComparison } from './compare-file.ts';

export interface Group {
  name: string;
  files: number;
  /** Without .eh_frame, Go's, relocatable, or of another architecture. */
  skipped: number;
  compared: number;
  coveredBytes: number;
  badFdes: number;
  differences: number;
  unsupportedCfi: Map<string, number>;
  unsaid: Map<string, number>;
  /** Of the files that differ. */
  examples: string[];
}

const MAX_EXAMPLES = 20;

export const newGroup = (name: string): Group => ({
  name,
  files: 0,
  skipped: 0,
  compared: 0,
  coveredBytes: 0,
  badFdes: 0,
  differences: 0,
  unsupportedCfi: new Map(),
  unsaid: new Map(),
  examples: [],
});

/** Whether the file differs. */
export function addFile(group: Group, path: string, file: FileComparison): boolean {
  group.files++;
  group.compared += file.compared;
  group.coveredBytes += file.coveredBytes;
  group.badFdes += file.badFdes;
  group.differences += file.differenceCount;
  addKinds(group.unsupportedCfi, file.unsupportedCfi);
  addKinds(group.unsaid, file.unsaid);
  const differs = file.differenceCount > 0 || file.badFdes > 0;
  if (differs && group.examples.length < MAX_EXAMPLES)
    group.examples.push(
      `- \`${path}\`: ${file.differenceCount} (${file.badFdes} bad FDEs); ${file.differences[0] ?? ''}`,
    );
  return differs;
}

function addKinds(sum: Map<string, number>, kinds: ReadonlyMap<string, number>): void {
  for (const [kind, bytes] of kinds) sum.set(kind, (sum.get(kind) ?? 0) + bytes);
}

const share = (bytes: number, of: number): string => `${((100 * bytes) / Math.max(of, 1)).toFixed(5)} %`;
const total = (kinds: ReadonlyMap<string, number>): number => [...kinds.values()].reduce((a, b) => a + b, 0);
const grouped = (n: number): string => n.toLocaleString('en-US');

const HEAD = `# Stack deltas against readelf

Written by \`npm run test:oracle\`: the rules made of \`.eh_frame\`, compared with \`readelf --debug-dump=frames-interp\` at each boundary of a row and one byte to either side. Where that prints \`exp\`, the expression is taken from \`--debug-dump=frames\`, and computed with made-up registers and memory next to our rule. Files without \`.eh_frame\`, relocatable objects and Go programs are left out.

| files | compared | left out | addresses | covered bytes | differences | bad FDEs | we can't express | readelf doesn't say |
|---|--:|--:|--:|--:|--:|--:|--:|--:|`;
const KINDS = `## By kind

What we can't express ends a stack with a marker, or loses the frame pointer of that one frame. On arm64 readelf prints an undefined return address and one that is still in x30 alike.`;

/** A group's row in the first table, and what it has of each kind. */
interface Entry {
  row: string;
  kinds: string;
}

export const describeGroups = (groups: readonly Group[]): string =>
  formatPage(new Map(groups.map((group) => [group.name, entryOf(group)])));

/** The page with what it says of this group replaced; what it says of others stays. */
export const updatePage = (page: string, group: Group): string =>
  formatPage(parsePage(page).set(group.name, entryOf(group)));

const entryOf = (group: Group): Entry => ({ row: describeGroup(group), kinds: describeKinds(group) });

function formatPage(entries: ReadonlyMap<string, Entry>): string {
  const rows = [...entries.values()].map(({ row }) => row);
  return `${[[HEAD, ...rows].join('\n'), KINDS, ...[...entries.values()].map(({ kinds }) => kinds)].join('\n\n')}\n`;
}

function parsePage(page: string): Map<string, Entry> {
  const [head = '', ...sections] = page.trimEnd().split(/\n\n(?=### )/);
  return new Map(
    sections.map((kinds) => {
      const name = kinds.slice('### '.length).split('\n')[0]!;
      const row = head.split('\n').find((line) => line.startsWith(`| ${name} |`));
      if (!row) throw new Error(`docs/oracle.md has no row for ${name}`);
      return [name, { row, kinds }];
    }),
  );
}

const describeGroup = (g: Group): string =>
  `| ${g.name} | ${grouped(g.files)} | ${grouped(g.skipped)} | ${grouped(g.compared)} | ${grouped(g.coveredBytes)} | ${grouped(g.differences)} | ${g.badFdes} | ${share(total(g.unsupportedCfi), g.coveredBytes)} | ${share(total(g.unsaid), g.coveredBytes)} |`;

function describeKinds(group: Group): string {
  const lines = (title: string, kinds: ReadonlyMap<string, number>): string[] =>
    [...kinds]
      .sort((a, b) => b[1] - a[1])
      .map(
        ([kind, bytes]) => `| ${title} | ${kind} | ${grouped(bytes)} | ${share(bytes, group.coveredBytes)} |`,
      );
  const rows = [...lines("we can't", group.unsupportedCfi), ...lines("readelf doesn't", group.unsaid)];
  const table = ['| | kind | bytes | share |', '|---|---|--:|--:|', ...rows].join('\n');
  return [`### ${group.name}`, table, ...(group.examples.length ? [group.examples.join('\n')] : [])].join(
    '\n\n',
  );
}
