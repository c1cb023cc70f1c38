import type { Command } from 'commander';
import { DebugFiles, placeOf } from '../../agent/files/debug-files.ts';
import { FilePool } from '../../agent/files/file-pool.ts';
import { describeRule, type RuleText } from '../../agent/stack-deltas/rules/describe.ts';
import { extractStackDeltas, type StackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import { lastAtOrBelow } from '../../common/base/search.ts';
import type { ElfFile } from '../../common/elf/elf.ts';
import { findSeparateDebugInfo } from '../../common/symbols/separate-symbols.ts';
import { addExamples } from '../program/examples.ts';
import { parseAddress, withElf } from '../symbols/open-elf.ts';

interface Options {
  at?: string;
  json?: boolean;
}

export function registerShowStackDeltas(show: Command): void {
  const command = show
    .command('stack-deltas')
    .description('print how the stacks of an ELF file are unwound, address by address')
    .argument('<ELF>', 'executable or shared library')
    .option('--at <ADDRESS>', 'only the rule that covers this ELF virtual address (0x… or decimal)')
    .option('--json', 'one JSON object a line')
    .action((path: string, options: Options) => showStackDeltas(path, options));
  addExamples(command, [
    ['everyframe show stack-deltas /usr/bin/node | head', 'the first rules'],
    ['everyframe show stack-deltas --at 0x1234 libfoo.so', 'the rule of one address'],
  ]);
}

async function showStackDeltas(path: string, options: Options): Promise<void> {
  const at = options.at === undefined ? undefined : parseAddress(options.at, '--at');
  const deltas = await withElf(path, (elf) => extractWithDebugFiles(elf, path));
  const format = options.json ? formatJson : formatText;
  if (at === undefined) printAll(path, deltas, format);
  else process.stdout.write(format(deltas, lastAtOrBelow(deltas.addresses, at)));
}

function extractWithDebugFiles(elf: ElfFile, path: string): StackDeltas {
  const pool = new FilePool();
  try {
    const files = new DebugFiles(placeOf(path), pool);
    return extractStackDeltas(elf, () => findSeparateDebugInfo(elf, files)?.elf);
  } finally {
    pool.close();
  }
}

/** In pieces, as fast as the reader takes them: a table may have a million rows. */
function printAll(
  path: string,
  deltas: StackDeltas,
  format: (deltas: StackDeltas, row: number) => string,
): void {
  const rowsAtOnce = 1000;
  let row = 0;
  const more = (): void => {
    while (row < deltas.addresses.length) {
      let text = '';
      const end = Math.min(row + rowsAtOnce, deltas.addresses.length);
      for (; row < end; row++) text += format(deltas, row);
      if (!process.stdout.write(text)) {
        process.stdout.once('drain', more);
        return;
      }
    }
    printRemarks(path, deltas);
  };
  more();
}

function printRemarks(path: string, { addresses, stats }: StackDeltas): void {
  if (addresses.length === 0) console.error(`${path} has no unwind information`);
  for (const section of [stats.ehFrame, stats.debugFrame, stats.sframe, stats.separateFrame]) {
    if (!section || section.badFdes === 0) continue;
    const reasons = [...section.reasons].map(([reason, n]) => `${n} × ${reason}`).join('; ');
    console.error(
      `${section.badFdes} functions were left out, their unwind information is broken: ${reasons}`,
    );
  }
}

function ruleText(deltas: StackDeltas, row: number): RuleText {
  const rule = row < 0 ? undefined : deltas.rules[deltas.ruleIds[row]!];
  return rule ? describeRule(rule, deltas.machine) : { kind: 'invalid' };
}

const hex = (deltas: StackDeltas, row: number): string => `0x${(deltas.addresses[row] ?? 0).toString(16)}`;

const formatJson = (deltas: StackDeltas, row: number): string =>
  `${JSON.stringify({ address: hex(deltas, row), ...ruleText(deltas, row) })}\n`;

function formatText(deltas: StackDeltas, row: number): string {
  const { kind, cfa = '', fp = '', ra = '' } = ruleText(deltas, row);
  return `${hex(deltas, row).padEnd(18)} ${kind.padEnd(13)} ${cfa.padEnd(26)} ${fp.padEnd(10)} ${ra}`
    .trimEnd()
    .concat('\n');
}
