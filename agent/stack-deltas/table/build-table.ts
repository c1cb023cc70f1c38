/** Everything that is read of an executable when it is first reported, in one go. */

import { type ByteSource, OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError, type ElfFile, type Machine, parseElf, type Segment } from '../../../common/elf/elf.ts';
import { computeFileId } from '../../../common/elf/file-id.ts';
import { type CodeRange, findGoCode } from '../../../common/elf/go-code.ts';
import { findSeparateDebugInfo } from '../../../common/symbols/separate-symbols.ts';
import type { FileAccess } from '../../../common/symbols/source.ts';
import type { DetectedRuntime } from '../../interpreters/contract.ts';
import { type Detection, detectRuntime } from '../../runtimes/registry.ts';
import { TableTooLarge } from '../rules/table-limits.ts';
import { extractStackDeltas } from '../stack-deltas.ts';
import { type PackedTable, packTable } from './pack.ts';

export interface ExecutableTable extends UnwindTable {
  fileId: string;
  gnuBuildId: string;
  goBuildId: string;
  /** Code that Go's compiler made. */
  goCode: CodeRange | undefined;
  machine: Machine;
  segments: readonly Segment[];
  /** The language runtime that the file contains. */
  runtime: DetectedRuntime | undefined;
  /** Why a runtime in it can't be unwound, '' otherwise. */
  runtimeProblem: string;
  /** What in the file contradicts itself where a runtime was looked for, '' otherwise. */
  runtimeDamage: string;
}

export type BuildResult =
  | { kind: 'built'; executable: ExecutableTable }
  /** Not an ELF file of a kind that can be handled; the reason is a sentence. */
  | { kind: 'not-elf'; reason: string }
  /** Truncated, contradictory, or too large. */
  | { kind: 'broken'; reason: string };

export interface BuildOptions {
  /** Of the file: decides about order only. */
  path?: string | undefined;
  /** How the file with its debug information is found; without, rules come from the file alone. */
  files?: FileAccess | undefined;
  /** What an earlier run made of this very file. */
  cached?: UnwindTable | undefined;
  /** What a look at this very file has found. */
  detected?: Detection | undefined;
  /** Is told of a language runtime in the file before the table is made, which takes longer. */
  onRuntime?: ((runtime: DetectedRuntime) => void) | undefined;
}

/** Made of the file alone, but for what `usesSeparate` shows. */
export interface UnwindTable {
  /** Undefined where the file has no unwind information. */
  table: PackedTable | undefined;
  badFdes: number;
  /** It has rules of another file, that with its debug information: what holds for a copy of this file may differ. */
  usesSeparate: boolean;
}

export function buildTable(
  source: ByteSource,
  { path, files, cached, detected, onRuntime }: BuildOptions = {},
): BuildResult {
  try {
    const elf = parseElf(source);
    const { runtime, problem, damage } = detected ?? detectRuntime(elf, path);
    if (runtime) onRuntime?.(runtime);
    const unwind = cached ?? makeUnwindTable(elf, files);
    return {
      kind: 'built',
      executable: {
        fileId: computeFileId(source),
        gnuBuildId: elf.gnuBuildId,
        goBuildId: elf.goBuildId,
        goCode: findGoCode(elf),
        machine: elf.machine,
        segments: elf.segments,
        ...unwind,
        runtime,
        runtimeProblem: problem,
        runtimeDamage: damage,
      },
    };
  } catch (error) {
    if (error instanceof ElfError) return { kind: 'not-elf', reason: error.message };
    if (error instanceof OutOfBounds || error instanceof TableTooLarge)
      return { kind: 'broken', reason: error.message };
    throw error;
  }
}

function makeUnwindTable(elf: ElfFile, files: FileAccess | undefined): UnwindTable {
  const deltas = extractStackDeltas(elf, () => files && findSeparateDebugInfo(elf, files)?.elf);
  const { ehFrame, debugFrame, sframe, separateFrame } = deltas.stats;
  const badFdes = [ehFrame, debugFrame, sframe, separateFrame].reduce((sum, s) => sum + (s?.badFdes ?? 0), 0);
  return { table: packTable(deltas, elf.segments), badFdes, usesSeparate: separateFrame !== undefined };
}
