import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { readAssembly } from '../../common/dotnet/pe.ts';
import { PdbService } from './pdb-service.ts';

const PID = 4711;
const FIXTURES = join(import.meta.dirname, '../../test/runtimes/dotnet');
/** Row of Known.Work.Spin, and of Split.Now. */
const ROW = 2;

describe('PDBs of a process', () => {
  let folder: string;
  let root: string;
  let service: PdbService;

  const copy = (name: string, to = name): void => copyFileSync(join(FIXTURES, name), join(root, to));
  const moduleId = readAssembly(bufferSource(readFileSync(join(FIXTURES, 'chain.dll')))).moduleId;
  const resolve = (execution: number, id = moduleId) =>
    service.resolve({
      pid: PID,
      execution,
      file: '/chain.dll',
      places: [{ moduleId: id, row: ROW, ilOffset: 0 }],
    });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-pdb-'));
    root = join(folder, 'root');
    mkdirSync(join(folder, `proc/${PID}`), { recursive: true });
    mkdirSync(root);
    symlinkSync(root, join(folder, `proc/${PID}/root`));
    writeFileSync(join(folder, `proc/${PID}/status`), 'Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n');
    writeFileSync(join(folder, `proc/${PID}/stat`), `${PID} (dotnet) S ${Array(40).fill(1).join(' ')}\n`);
    service = new PdbService(join(folder, 'proc'));
    copy('chain.dll');
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('are read beside the assembly', () => {
    expect(resolve(1)).toEqual({ kind: 'none' });
    copy('chain.pdb');
    expect(resolve(1)).toEqual({ kind: 'none' });
    expect(resolve(2)).toMatchObject({ kind: 'places', places: [{ file: '/src/chain.cs', line: 35 }] });
  });

  it('are read in the assembly', () => {
    const assembly = readFileSync(join(FIXTURES, 'split.dll'));
    const { moduleId, embedded } = readAssembly(bufferSource(assembly));
    copy('split.dll');
    const place = { moduleId, row: ROW, ilOffset: 0 };
    const ask = (execution: number) =>
      service.resolve({ pid: PID, execution, file: '/split.dll', places: [place] });
    expect(ask(1)).toMatchObject({ kind: 'places', places: [{ file: '/src/split.cs', line: 23 }] });
    // it says that it is smaller than it gets to be
    const at = assembly.indexOf('MPDB') + 4;
    assembly.writeUInt32LE(embedded!.size - 1, at);
    writeFileSync(join(root, 'split.dll'), assembly);
    expect(ask(2)).toEqual({ kind: 'malformed' });
    assembly.writeUInt32LE(2 ** 31, at);
    writeFileSync(join(root, 'split.dll'), assembly);
    expect(ask(3)).toEqual({ kind: 'too-large' });
  });

  it('are those of what was loaded', () => {
    copy('chain.pdb');
    expect(resolve(1, '00'.repeat(16))).toEqual({ kind: 'changed' });
    const other = readFileSync(join(FIXTURES, 'chain.pdb'));
    // the ID stands first in its stream
    const { pdb } = readAssembly(bufferSource(readFileSync(join(FIXTURES, 'chain.dll'))));
    other[other.indexOf(pdb!.id)]! ^= 1;
    writeFileSync(join(root, 'chain.pdb'), other);
    expect(resolve(2)).toEqual({ kind: 'changed' });
  });

  const isRoot = process.getuid?.() === 0;
  if (!isRoot) console.log('skipped: PDBs of other users (needs root)');
  it.skipIf(!isRoot)('are not believed where another user than the assembly’s can change them', () => {
    copy('chain.pdb');
    chownSync(join(root, 'chain.pdb'), 1000, 1000);
    expect(resolve(1)).toEqual({ kind: 'refused' });
    chownSync(join(root, 'chain.dll'), 1000, 1000);
    expect(resolve(2)).toMatchObject({ kind: 'places' });
  });

  it('are none where they, or the assembly, make no sense', () => {
    writeFileSync(join(root, 'chain.pdb'), 'BSJB');
    expect(resolve(1)).toEqual({ kind: 'malformed' });
    writeFileSync(join(root, 'chain.dll'), 'MZ');
    expect(resolve(2)).toEqual({ kind: 'malformed' });
    rmSync(join(root, 'chain.dll'));
    expect(resolve(3)).toEqual({ kind: 'none' });
    expect(service.resolve({ pid: 1, execution: 4, file: '/a.dll', places: [] })).toEqual({ kind: 'gone' });
  });
});
