/**
 * Notes at a test which build of a runtime it tried, and what came out. scripts/runtime-support.ts finds the notes in
 * vitest's report, and makes the tables of docs/interpreters/support.md and what the agent calls verified out of them.
 */
import { readFileSync } from 'node:fs';
import type { TestedBuild, TestedSplit } from '../../scripts/runtime-support.ts';

declare module 'vitest' {
  interface TaskMeta {
    build?: TestedBuild;
    split?: TestedSplit;
  }
}

/** `Debian bookworm`, for what is installed here; `Debian bookworm, arm64`. */
export function describeInstallation(): string {
  const release = readFileSync('/etc/os-release', 'utf8');
  const field = (name: string): string => new RegExp(`^${name}="?(.*?)"?$`, 'm').exec(release)?.[1] ?? '';
  const origin = [field('NAME').split(' ')[0], field('VERSION_CODENAME')].filter((text) => text !== '');
  return `${origin.join(' ')}${process.arch === 'x64' ? '' : `, ${process.arch}`}`;
}
