/**
 * Was the agent tested with this version of a runtime? If not it is unwound all the same, and a person is told; so is one
 * whose runtime can't be unwound.
 */
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { TESTED } from './tested.gen.ts';

const MAX_TOLD = 64;

/** 3.13 of 3.13.5, 3.13t of 3.13.5t: releases of one series keep their layout, free-threaded builds have another. */
const seriesOf = (version: string): string => version.replace(/^(\d+\.\d+)[\d.]*/, '$1');

export const isVerified = (
  { runtime, version }: Pick<DetectedRuntime, 'runtime' | 'version'>,
  tested: Readonly<Record<string, readonly string[]>> = TESTED,
): boolean => tested[runtime]?.includes(seriesOf(version)) ?? false;

/** Tells of each version that was not tested, once. */
export function tellUnverified(
  tell: (message: string) => void,
): (runtime: DetectedRuntime, path: string) => void {
  const told = new Set<string>();
  return (detected, path) => {
    const { runtime, version } = detected;
    const text = `${runtime} ${version}`;
    if (isVerified(detected) || told.has(text) || told.size >= MAX_TOLD) return;
    told.add(text);
    tell(
      `${text} (${path}) is unverified: everyframe was not tested with it, its frames may be missing or wrong`,
    );
  };
}

/** Tells of processes whose runtime can't be attached to, once for each reason. */
export function tellRefused(tell: (message: string) => void): (problem: string) => void {
  const told = new Set<string>();
  return (problem) => {
    if (told.has(problem) || told.size >= MAX_TOLD) return;
    told.add(problem);
    tell(`${problem}; stacks of its processes end at its functions`);
  };
}

/** Tells of each file whose runtime can't be unwound, once: copies in the roots of containers have one path. */
export function tellUnsupported(tell: (message: string) => void): (problem: string, path: string) => void {
  const told = new Set<string>();
  return (problem, path) => {
    const text = `${path}: ${problem}`;
    if (told.has(text) || told.size >= MAX_TOLD) return;
    told.add(text);
    tell(`${text}; functions of this runtime have no names, its native frames do`);
  };
}
