/** Everything that is read of an executable when it is first met, in one go. */

import { ElfError, type Machine, parseElf, type Segment } from '../../common/elf/elf.ts';
import { computeFileId } from '../../common/elf/file-id.ts';
import { type ByteSource, OutOfBounds } from '../../common/elf/source.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { detectRuntime } from '../interpreters/registry.ts';
import { type PackedTable, packTable, TableTooLarge } from './pack.ts';
import { extractStackDeltas } from './stack-deltas.ts';

export interface ExecutableTable {
  fileId: string;
  gnuBuildId: string;
  goBuildId: string;
  machine: Machine;
  segments: readonly Segment[];
  /** Undefined where the file has no unwind information. */
  table: PackedTable | undefined;
  badFdes: number;
  /** The language runtime that the file contains. */
  runtime: DetectedRuntime | undefined;
  /** Why a runtime in it can't be unwound, '' otherwise. */
  runtimeProblem: string;
}

export type BuildResult =
  | { kind: 'built'; executable: ExecutableTable }
  /** Not an ELF file of a kind that can be handled; the reason is a sentence. */
  | { kind: 'not-elf'; reason: string }
  /** Truncated, contradictory, or too large. */
  | { kind: 'broken'; reason: string };

export function buildTable(source: ByteSource): BuildResult {
  try {
    const elf = parseElf(source);
    const deltas = extractStackDeltas(elf);
    const { ehFrame, debugFrame } = deltas.stats;
    const { runtime, problem } = detectRuntime(elf);
    return {
      kind: 'built',
      executable: {
        fileId: computeFileId(source),
        gnuBuildId: elf.gnuBuildId,
        goBuildId: elf.goBuildId,
        machine: elf.machine,
        segments: elf.segments,
        table: packTable(deltas, elf.segments),
        badFdes: (ehFrame?.badFdes ?? 0) + (debugFrame?.badFdes ?? 0),
        runtime,
        runtimeProblem: problem,
      },
    };
  } catch (error) {
    if (error instanceof ElfError) return { kind: 'not-elf', reason: error.message };
    if (error instanceof OutOfBounds || error instanceof TableTooLarge)
      return { kind: 'broken', reason: error.message };
    throw error;
  }
}
