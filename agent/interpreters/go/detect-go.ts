/** Is Go's runtime in this ELF file, which version, and where does a thread keep its goroutine, and that its labels? */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile } from '../../../common/elf/elf.ts';
import { readGoVersion } from '../../../common/elf/go-build-info.ts';
import {
  findLabels,
  findThreadOffset,
  findThreadOffsetSlot,
  readLoadG,
} from '../../../common/elf/go-instructions.ts';
import { isGo } from '../../../common/elf/go-module.ts';
import { findGoPclntab, type GoFunction } from '../../../common/elf/go-pclntab.ts';
import { type GoLayout, layoutOf } from './layout.ts';

/** Where a thread has its g. */
export type GoroutineAccess =
  | { kind: 'threadLocal'; offset: number }
  /** The loader puts the offset there: an ELF virtual address. */
  | { kind: 'slot'; address: number }
  | { kind: 'register' };

export interface GoBinary {
  /** `1.26.8`. */
  version: string;
  layout: GoLayout;
  access: GoroutineAccess;
  /** The program has what sets labels. */
  setsLabels: boolean;
  /** Difference between virtual address and file offset of the code. */
  textBias: number;
}

const SWITCHES = { x86_64: 'runtime.morestack', aarch64: 'runtime.load_g' } as const;
const SETS_LABELS = 'runtime/pprof.runtime_setProfLabel';
const MAX_CODE_BYTES = 256;

/** Undefined where the file has no runtime of Go, or says too little of it. Throws ElfError, OutOfBounds. */
export function detectGo(elf: ElfFile): GoBinary | undefined {
  if (!isGo(elf)) return undefined;
  const version = readGoVersion(elf);
  const layout = version === undefined ? undefined : layoutOf(version);
  if (version === undefined || !layout) return undefined;
  const { [SWITCHES[elf.machine]]: switches, [SETS_LABELS]: sets } = findFunctions(elf);
  const access = switches && accessOf(elf, switches);
  const textBias = switches && textBiasAt(elf, switches.start);
  if (!access || textBias === undefined) return undefined;
  const labels = sets && findLabels(codeOf(elf, sets), elf.machine);
  return {
    version,
    // the code knows better than a table of releases
    layout: { ...layout, labels: labels ?? layout.labels },
    access,
    setsLabels: sets !== undefined,
    textBias,
  };
}

function findFunctions(elf: ElfFile): Record<string, GoFunction | undefined> {
  const table = findGoPclntab(elf);
  const names = table?.placesOf([SWITCHES[elf.machine], SETS_LABELS]);
  const found: Record<string, GoFunction> = {};
  if (!table || !names) return found;
  for (const f of table.functions()) {
    const name = names.get(f.nameAt);
    if (name === undefined) continue;
    found[name] ??= f;
    if (Object.keys(found).length === names.size) break;
  }
  return found;
}

function accessOf(elf: ElfFile, switches: GoFunction): GoroutineAccess | undefined {
  const code = codeOf(elf, switches);
  if (elf.machine === 'aarch64') return armAccess(elf, code, switches.start);
  const offset = findThreadOffset(code);
  if (offset !== undefined) return { kind: 'threadLocal', offset };
  const address = findThreadOffsetSlot(code, switches.start);
  return address === undefined ? undefined : { kind: 'slot', address };
}

function armAccess(elf: ElfFile, code: Uint8Array, start: number): GoroutineAccess | undefined {
  const found = readLoadG(code, start);
  if (!found) return undefined;
  // what is not in the file is zero
  const at = elf.addressToFileOffset(found.hasC);
  if (at === undefined || elf.source.read(at, 1)[0] === 0) return { kind: 'register' };
  if (found.offset !== undefined) return { kind: 'threadLocal', offset: found.offset };
  return found.slot === undefined ? undefined : { kind: 'slot', address: found.slot };
}

const codeOf = (elf: ElfFile, { start, end }: GoFunction): Uint8Array =>
  codeAt(elf, start, Math.min(end - start, MAX_CODE_BYTES));
