import type { Command } from 'commander';
import { printable } from '../../common/base/printable.ts';
import type { ElfFile } from '../../common/elf/elf.ts';
import { computeFileId } from '../../common/elf/file-id.ts';
import { type OfferedSymbols, symbolInventory } from '../../common/symbols/symbol-inventory.ts';
import { addExamples } from '../program/examples.ts';
import { withElf } from '../symbols/open-elf.ts';

interface Options {
  json?: boolean;
}

export function registerShowObject(show: Command): void {
  const command = show
    .command('object')
    .description('print what an ELF file offers to a profiler: its identity and its sources of names')
    .argument('<ELF>', 'executable or shared library')
    .option('--json', 'print {"schema":"everyframe.object/1",…}')
    .action((path: string, options: Options) => withElf(path, (elf) => showObject(elf, options)));
  addExamples(command, [
    ['everyframe show object /usr/bin/node', 'its IDs, sections and sources of names'],
    ['everyframe show object --json libfoo.so', 'the same for a script'],
  ]);
}

interface ObjectFacts {
  schema: 'everyframe.object/1';
  fileId: string;
  gnuBuildId: string;
  goBuildId: string;
  machine: string;
  /** Bytes that its headers tell of, and that are not in the file: it was cut, or they are wrong. */
  missingBytes: number;
  sections: { name: string; address: string; size: number }[];
  rungs: OfferedSymbols[];
}

async function showObject(elf: ElfFile, options: Options): Promise<void> {
  const facts: ObjectFacts = {
    schema: 'everyframe.object/1',
    fileId: computeFileId(elf.source),
    gnuBuildId: elf.gnuBuildId,
    goBuildId: elf.goBuildId,
    machine: elf.machine,
    missingBytes: Math.max(0, elf.declaredBytes - elf.source.size),
    sections: elf.sections
      .filter(({ name }) => name !== '')
      .map(({ name, addr, size }) => ({ name, address: `0x${addr.toString(16)}`, size })),
    rungs: await symbolInventory(elf),
  };
  process.stdout.write(options.json ? `${JSON.stringify(facts)}\n` : formatText(facts));
}

function formatText(facts: ObjectFacts): string {
  const lines = [
    `file ID       ${facts.fileId}`,
    `GNU build ID  ${facts.gnuBuildId || 'none'}`,
    `Go build ID   ${facts.goBuildId || 'none'}`,
    `machine       ${facts.machine}`,
    ...(facts.missingBytes > 0 ? [`cut           the last ${facts.missingBytes} bytes are missing`] : []),
    '',
    'sources of names, best first',
    ...facts.rungs.map(({ rung, present, bytes, detail }) =>
      `  ${rung.padEnd(16)} ${(present ? `${bytes} bytes` : 'none').padEnd(18)} ${printable(detail)}`.trimEnd(),
    ),
    '',
    'sections',
    ...facts.sections.map(
      ({ name, address, size }) => `  ${address.padEnd(18)} ${`${size}`.padStart(12)} ${printable(name)}`,
    ),
  ];
  return `${lines.join('\n')}\n`;
}
