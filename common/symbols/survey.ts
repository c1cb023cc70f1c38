import type { ElfFile } from '../elf/elf.ts';

export interface OfferedSymbols {
  rung: 'dwarf' | 'symtab' | 'gnu_debugdata' | 'gnu_debuglink' | 'gopclntab' | 'dynsym';
  present: boolean;
  /** Of its tables in the file, as stored. */
  bytes: number;
  /** What a person may want to know of it; '' if nothing. */
  detail: string;
}

/** The sources of names that stand in an ELF file, best first. */
export function surveySymbols(elf: ElfFile): OfferedSymbols[] {
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
  const entries = (table: string) => () => {
    const { size = 0, entsize = 0 } = elf.section(table) ?? {};
    return entsize > 0 ? `${Math.floor(size / entsize)} entries` : '';
  };
  const hasUnits = elf.sections.some(({ name }) => /^\.z?debug_info(\.dwo)?$/.test(name));
  return [
    hasUnits
      ? rung('dwarf', /^(\.z?debug_|\.gnu_debugaltlink$)/, (names) => names.join(' '))
      : { rung: 'dwarf', present: false, bytes: 0, detail: '' },
    rung('symtab', /^\.(symtab|strtab)$/, entries('.symtab')),
    rung('gnu_debugdata', /^\.gnu_debugdata$/),
    rung('gnu_debuglink', /^\.gnu_debuglink$/, () => linkName(elf)),
    rung('gopclntab', /^(\.data\.rel\.ro)?\.gopclntab$/),
    rung('dynsym', /^\.(dynsym|dynstr)$/, entries('.dynsym')),
  ];
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
