/**
 * Where BEAM keeps what unwinding and naming need: beam_ranges.c, beam_code.h, index.h, atom.h and erl_process.h of each release.
 * Offsets in bytes, checked in live processes of 24, 25, 27, 28 and 29; on arm64 of 25, 27 and 29. 26 as a state before 26.0-rc1 has them.
 */
import type { Machine } from '../../../common/elf/elf.ts';

export interface BeamLayout {
  /** BeamCodeHeader: the address of its MD5. */
  md5: number;
  /** BeamCodeHeader: the first of its functions. */
  functions: number;
  /** Process: under which name it is registered, 0: not known. */
  registered: number;
  /** Process: where it goes on, once it has its turn again; 0: not known. */
  resumed: number;
  /** An atom has its name as a term; else its address. */
  hasNameTerms: boolean;
  /** A module names its files by atoms, from 1 on; 0 is its own name and .erl. Else by texts. */
  hasFileAtoms: boolean;
}

/** struct ranges: address, number, number that it has room for, address of the middle one. */
export const RANGES = { modules: 0, count: 8, allocated: 16, middle: 24, bytes: 32, tables: 3 } as const;
export const RANGE_BYTES = 16;
export const MODULE = { functionCount: 0, lines: 72 } as const;
/** ErtsCodeInfo. */
export const FUNCTION = { module: 16, name: 24, arity: 32, bytes: 40 } as const;
/** BeamCodeLineTab. */
export const LINES = { files: 0, locationBytes: 8, locations: 16, functions: 24 } as const;
/** IndexTable: `name` is where the text is told that it is called by. */
export const ATOMS = { name: 64, segments: 120 } as const;
export const ATOM = { length: 24, name: 32, bytes: 40 } as const;

/** That of the newest release whose layout is known, for later ones: what is read is checked. */
export function layoutOf(release: number, machine: Machine): BeamLayout {
  const layout = layoutOnAmd64(release);
  // a process has a frame pointer there, in front of that place
  return machine === 'x86_64' ? layout : { ...layout, resumed: layout.resumed - 8 };
}

function layoutOnAmd64(release: number): BeamLayout {
  const later = { hasFileAtoms: false, hasNameTerms: false };
  if (release >= 28)
    return { ...later, md5: 136, functions: 152, registered: 0x20, resumed: 0xf8, hasNameTerms: true };
  if (release >= 27) return { ...later, md5: 120, functions: 136, registered: 0x20, resumed: 0xf8 };
  if (release >= 26) return { ...later, md5: 80, functions: 96, registered: 0, resumed: 0x100 };
  if (release >= 25) return { ...later, md5: 80, functions: 96, registered: 0x30, resumed: 0x100 };
  return { ...later, md5: 80, functions: 88, registered: 0x30, resumed: 0xf8, hasFileAtoms: true };
}
