import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError } from '../../../common/elf/elf.ts';
import { BadFrame } from './cfi-program.ts';

const MAX_REASONS = 32;

/** What became of the functions of a section. */
export class FrameSectionStats {
  fdes = 0;
  badFdes = 0;
  badCies = 0;
  /** Reason → FDEs, of the first few reasons. */
  readonly reasons = new Map<string, number>();

  /** @throws what is not the fault of the section */
  countBad(error: unknown): void {
    if (!(error instanceof BadFrame || error instanceof ElfError || error instanceof OutOfBounds))
      throw error;
    const { reasons } = this;
    const reason = error instanceof OutOfBounds ? 'reads past its end' : error.message;
    if (reasons.has(reason) || reasons.size < MAX_REASONS)
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    this.badFdes++;
  }
}
