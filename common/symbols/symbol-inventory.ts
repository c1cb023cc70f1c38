import { OutOfBounds } from '../base/byte-source.ts';
import { ElfError, type ElfFile } from '../elf/elf.ts';
import { type GoTablePlace, locateGoTable } from '../elf/go-module.ts';
import { readMiniDebugInfo } from './mini-debug-info.ts';

export interface OfferedSymbols {
  rung: 'dwarf' | 'symtab' | 'gnu_debugdata' | 'gnu_debuglink' | 'gopclntab' | 'dynsym';
  present: boolean;
  /** Of its tables in the file, as stored. */
  bytes: number;
  /** What a person may want to know of it; '' if nothing. */
  detail: string;
}

/** The sources of names that stand in an ELF file, best first. */
export async function symbolInventory(elf: ElfFile): Promise<OfferedSymbols[]> {
  const mini = await describeMini(elf);
  const rung = (
    name: OfferedSymbols['rung'],
    sections: RegExp,
    detail: (names: string[]) => string = () => '',
  ): OfferedSymbols => {
    const found = elf.sections.filter((section) => sections.test(section.name));
    const bytes = found.reduce((sum, { size }) => sum + size, 0);
    const present = bytes > 0;
    return { rung: name, present, bytes, detail: present ? detail(found.map((s) => s.name)) : '' };
  };
  const hasUnits = elf.sections.some(({ name }) => /^\.z?debug_info(\.dwo)?$/.test(name));
  return [
    hasUnits
      ? rung('dwarf', /^(\.z?debug_|\.gnu_debugaltlink$)/, (names) => names.join(' '))
      : { rung: 'dwarf', present: false, bytes: 0, detail: '' },
    rung('symtab', /^\.(symtab|strtab)$/, () => entries(elf, '.symtab')),
    rung('gnu_debugdata', /^\.gnu_debugdata$/, () => mini),
    rung('gnu_debuglink', /^\.gnu_debuglink$/, () => linkName(elf)),
    goTable(elf),
    rung('dynsym', /^\.(dynsym|dynstr)$/, () => entries(elf, '.dynsym')),
  ];
}

/** Go's runtime needs no section to find it, nor do we; where it ends is not known then. */
function goTable(elf: ElfFile): OfferedSymbols {
  const { section, size = 0 } = locateIn(elf) ?? {};
  return { rung: 'gopclntab', present: size > 0, bytes: size, detail: size > 0 && !section ? 'at most' : '' };
}

function locateIn(elf: ElfFile): GoTablePlace | undefined {
  try {
    return locateGoTable(elf);
  } catch (error) {
    if (!(error instanceof OutOfBounds)) throw error;
    return undefined;
  }
}

function entries(elf: ElfFile, table: string): string {
  const { size = 0, entsize = 0 } = elf.section(table) ?? {};
  return entsize > 0 ? `${Math.floor(size / entsize)} entries` : '';
}

async function describeMini(elf: ElfFile): Promise<string> {
  try {
    const mini = await readMiniDebugInfo(elf);
    return mini ? `${entries(mini, '.symtab')}, ${mini.source.size} bytes when decompressed` : '';
  } catch (error) {
    if (!(error instanceof ElfError)) throw error;
    return `not readable: ${error.message}`;
  }
}

function linkName(elf: ElfFile): string {
  const section = elf.section('.gnu_debuglink');
  if (!section || section.size > 4096) return '';
  try {
    const bytes = elf.sectionData(section);
    const end = bytes.indexOf(0);
    return Buffer.from(bytes.subarray(0, end < 0 ? 0 : end)).toString();
  } catch {
    return '';
  }
}
