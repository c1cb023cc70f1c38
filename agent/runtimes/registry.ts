/** Which of the runtimes that are known a file holds. */
import { basename } from 'node:path';
import { OutOfBounds } from '../../common/base/byte-source.ts';
import { ElfError, type ElfFile } from '../../common/elf/elf.ts';
import { type DetectedRuntime, type RuntimePlugin, UnsupportedRuntime } from '../interpreters/contract.ts';
import { RUNTIMES } from './runtimes.gen.ts';

/** By its name alone: whether it holds one is found by reading it. */
export const mayHoldRuntime = (fileName: string): boolean =>
  RUNTIMES.some((plugin) => plugin.fileName.test(fileName));

export interface Detection {
  runtime: DetectedRuntime | undefined;
  /** Why a runtime in the file can't be unwound, '' otherwise. */
  problem: string;
  /** What in the file contradicts itself, so that it can't be told whether a runtime is in it; '' otherwise. */
  damage: string;
}

/** Asks every plug-in, that which the file is called after first. `path`: '' if unknown. */
export function detectRuntime(elf: ElfFile, path = ''): Detection {
  let problem = '';
  let damage = '';
  const isCalledAfter = ({ fileName }: RuntimePlugin): boolean => fileName.test(basename(path));
  const others = RUNTIMES.filter((plugin) => !isCalledAfter(plugin));
  for (const plugin of [...RUNTIMES.filter(isCalledAfter), ...others]) {
    try {
      const runtime = plugin.detect(elf);
      if (runtime) return { runtime, problem: '', damage: '' };
    } catch (error) {
      if (error instanceof UnsupportedRuntime) problem ||= error.message;
      else if (error instanceof ElfError || error instanceof OutOfBounds) damage ||= error.message;
      else throw error;
    }
  }
  return { runtime: undefined, problem, damage };
}
