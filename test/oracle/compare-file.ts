/** One ELF file, ours against readelf's. */
import { closeSync, openSync } from 'node:fs';
import { fdSource } from '../../agent/files/fd-source.ts';
import { extractStackDeltas, type StackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { isGo } from '../../common/elf/go-module.ts';
import { type Comparison, compareFrames } from './compare-frames.ts';
import { readelfFrames } from './readelf-frames.ts';

export interface FileComparison extends Comparison {
  machine: StackDeltas['machine'];
  badFdes: number;
  /** Of the extraction. */
  milliseconds: number;
}

/** Undefined where the file has no .eh_frame. Throws ElfError for what is not an ELF file of amd64 or arm64. */
export async function compareFile(path: string): Promise<FileComparison | undefined> {
  const fd = openSync(path, 'r');
  let deltas: StackDeltas;
  const before = performance.now();
  try {
    const elf = parseElf(fdSource(fd));
    // relocatable objects have no addresses yet
    if (elf.type !== 2 && elf.type !== 3) return undefined;
    deltas = extractStackDeltas(elf);
    // its .eh_frame is cgo's; of Go's own functions the compiler's .debug_frame leaves out where fp is
    if (isGo(elf) || !deltas.stats.ehFrame) return undefined;
  } finally {
    closeSync(fd);
  }
  const milliseconds = performance.now() - before;
  const { ehFrame, debugFrame } = deltas.stats;
  const comparison = compareFrames(deltas, (await readelfFrames(path)).ehFrame);
  const badFdes = (ehFrame?.badFdes ?? 0) + (debugFrame?.badFdes ?? 0);
  return { ...comparison, machine: deltas.machine, badFdes, milliseconds };
}
