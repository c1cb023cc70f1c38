/** Compiles the programs of test/fixtures into a folder of the test file, which goes away with all of the run's (own-cache.ts). */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const SOURCES = join(import.meta.dirname, '../fixtures');
const folder = mkdtempSync(join(process.env['EVERYFRAME_TEST_FILES'] ?? tmpdir(), 'everyframe-test-'));
// of those without a run around them, as bench's; vitest ends its processes before they could
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
