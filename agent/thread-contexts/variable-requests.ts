/** In a worker: does a file export one of the variables that thread contexts are found by, and where is it? */
import { type ElfFile, PF_X, PT_LOAD, parseElf } from '../../common/elf/elf.ts';
import { usesMusl } from '../../common/elf/uses-musl.ts';
import { findThreadLocal, type ThreadLocal } from '../../common/symbols/thread-local.ts';
import { fdSource } from '../files/fd-source.ts';
import type { WorkHandler } from '../workers/protocol.ts';

export interface VariableRequest {
  fd: number;
  name: string;
  /** Of a mapping with code, in the file. */
  codeOffset: number;
}

export interface FoundVariable {
  variable: ThreadLocal;
  /** ELF virtual address of the begin of that mapping. */
  codeAddress: number;
  isMusl: boolean;
}

const PAGE_BYTES = 4096;

export const createVariableHandler = (): WorkHandler<VariableRequest, FoundVariable | undefined> => ({
  handle({ fd, name, codeOffset }) {
    const elf = parseElf(fdSource(fd));
    const variable = findThreadLocal(elf, name);
    const codeAddress = variable && addressOfMapping(elf, codeOffset);
    return codeAddress === undefined
      ? undefined
      : { variable: variable!, codeAddress, isMusl: usesMusl(elf) };
  },
});

/** Mappings begin at pages, segments anywhere in one. */
function addressOfMapping(elf: ElfFile, codeOffset: number): number | undefined {
  const segment = elf.segments.find(
    ({ type, flags, offset, filesz }) =>
      type === PT_LOAD &&
      (flags & PF_X) !== 0 &&
      codeOffset > offset - PAGE_BYTES &&
      codeOffset < offset + filesz,
  );
  return segment && segment.vaddr - segment.offset + codeOffset;
}
