/** Entries of an ELF file's two tables: sizes in bytes, addresses as ELF virtual addresses. */

export interface Segment {
  type: number;
  flags: number;
  offset: number;
  vaddr: number;
  filesz: number;
  memsz: number;
  /** 0 and 1: any. */
  align: number;
}

export interface Section {
  name: string;
  type: number;
  flags: number;
  addr: number;
  offset: number;
  size: number;
  link: number;
  entsize: number;
}
