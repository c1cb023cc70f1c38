/**
 * A program with as much debug information as one likes, kept out of the repository: one translation unit is compiled,
 * and each copy of its object file gets another number in its names, which are as long as before. So it is linked from
 * hundreds of units of C++ without waiting for a compiler, and no two of them have a function in common but those of
 * the standard library that their linker folds.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { userCacheDirectory } from '../../agent/files/cache-directory.ts';

const SOURCE = new URL('../../../test/bench/load/large-unit.cc', import.meta.url).pathname;
/** In bytes of the object file: names, mangled or not, debug strings among them. */
const FIRST_NAME = Buffer.from('unit_0000');
/** What a unit adds to the program. */
const MEBIBYTES_A_UNIT = 4.7;
const MAX_UNITS = 10_000;

/** Path of a program of about so many MiB; it is built once. Needs g++ and twice as much room on the disk meanwhile. */
export function buildLargeProgram(mebibytes: number): string {
  const folder = join(userCacheDirectory(process.env), 'everyframe-symbols');
  mkdirSync(folder, { recursive: true });
  const units = Math.min(MAX_UNITS, Math.max(1, Math.round(mebibytes / MEBIBYTES_A_UNIT)));
  const path = join(folder, `large-${units}`);
  if (!existsSync(path)) link(units, folder, path);
  return path;
}

function link(units: number, folder: string, path: string): void {
  const scratch = mkdtempSync(join(folder, 'large-'));
  try {
    const first = join(scratch, 'unit.o');
    execFileSync('g++', ['-std=c++20', '-O2', '-gdwarf-5', '-DCOUNT=12', '-c', SOURCE, '-o', first]);
    const objects = copyObject(readFileSync(first), units, scratch);
    const main = join(scratch, 'main.cc');
    writeFileSync(main, mainText(units));
    const list = join(scratch, 'objects');
    writeFileSync(list, objects.join('\n'));
    const linked = join(scratch, 'linked');
    execFileSync('g++', ['-gdwarf-5', '-o', linked, main, `@${list}`]);
    renameSync(linked, path);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const nameOf = (unit: number): string => `unit_${unit.toString().padStart(4, '0')}`;

function copyObject(object: Buffer, units: number, folder: string): string[] {
  const places: number[] = [];
  for (let at = object.indexOf(FIRST_NAME); at >= 0; at = object.indexOf(FIRST_NAME, at + 1)) places.push(at);
  return Array.from({ length: units }, (_, unit) => {
    for (const at of places) object.write(nameOf(unit), at, 'latin1');
    const path = join(folder, `${nameOf(unit)}.o`);
    writeFileSync(path, object);
    return path;
  });
}

/** Calls into every unit, so that none is dropped. */
function mainText(units: number): string {
  const names = Array.from({ length: units }, (_, unit) => nameOf(unit));
  return [
    ...names.map((name) => `namespace ${name} { int entry(int); }`),
    'int main(int argc, char **) {',
    '  int sum = 0;',
    ...names.map((name) => `  sum += ${name}::entry(argc);`),
    '  return sum == 0;',
    '}',
    '',
  ].join('\n');
}
