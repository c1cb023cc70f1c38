/** Compiles the programs of test/fixtures into a folder that goes away with the test process. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const SOURCES = join(import.meta.dirname, '../fixtures');
const folder = mkdtempSync(join(tmpdir(), 'everyframe-test-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

export const hasTool = (tool: string): boolean => spawnSync('which', [tool]).status === 0;

/** Why a test that needs root can't run here, '' if it can. */
export const missingRights = process.getuid?.() === 0 ? '' : 'needs root';
if (missingRights) console.log('skipped: it needs root');

/** Path of the compiled program. */
export function compile(name: string, tool: string, flags: string[], ...sources: string[]): string {
  const out = join(folder, name);
  execFileSync(tool, [...flags, '-o', out, ...sources.map((source) => resolve(SOURCES, source))]);
  return out;
}

export const scratchFolder = folder;
