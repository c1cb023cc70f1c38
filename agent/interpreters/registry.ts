/** The runtimes that are known: a line each. */
import { basename } from 'node:path';
import { ElfError, type ElfFile } from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { type DetectedRuntime, type RuntimePlugin, UnsupportedRuntime } from './contract.ts';
import { cpython } from './python/plugin.ts';
import { v8 } from './v8/plugin.ts';

export const RUNTIMES: readonly RuntimePlugin[] = [cpython, v8];

/** By its name alone: whether it holds one is found by reading it. */
export const mayHoldRuntime = (fileName: string): boolean =>
  RUNTIMES.some((plugin) => plugin.fileName.test(fileName));

/**
 * Asks every plug-in, that which the file is called after first; a file that one of them can't handle has no runtime, and
 * a reason. `path`: '' if unknown.
 */
export function detectRuntime(
  elf: ElfFile,
  path = '',
): {
  runtime: DetectedRuntime | undefined;
  problem: string;
} {
  let problem = '';
  const isCalledAfter = ({ fileName }: RuntimePlugin): boolean => fileName.test(basename(path));
  const others = RUNTIMES.filter((plugin) => !isCalledAfter(plugin));
  for (const plugin of [...RUNTIMES.filter(isCalledAfter), ...others]) {
    try {
      const runtime = plugin.detect(elf);
      if (runtime) return { runtime, problem: '' };
    } catch (error) {
      if (!(error instanceof UnsupportedRuntime || error instanceof ElfError || error instanceof OutOfBounds))
        throw error;
      problem ||= error.message;
    }
  }
  return { runtime: undefined, problem };
}
