import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SourceMapService } from './source-map-service.ts';

const PID = 4711;
const MAP = '{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}';
/** Began later than any file here. */
const NEW_PROCESS = 2 ** 40;
const PLACE = { name: 'a', line: 1, column: 1, startLine: 0, startColumn: 0 };

describe('source maps of a process', () => {
  let folder: string;
  let root: string;
  let service: SourceMapService;

  const startAt = (ticks: number): void => {
    const fields = Array.from({ length: 40 }, (_, i) => (i === 19 ? ticks : 1));
    writeFileSync(join(folder, `proc/${PID}/stat`), `${PID} (node) S ${fields.slice(1).join(' ')}\n`);
  };
  const write = (name: string, text: string): void => writeFileSync(join(root, name), text);
  const resolve = (file: string, execution = 1) =>
    service.resolve({ pid: PID, execution, file, places: [PLACE] });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-source-maps-'));
    root = join(folder, 'root');
    mkdirSync(join(folder, `proc/${PID}`), { recursive: true });
    mkdirSync(root);
    symlinkSync(root, join(folder, `proc/${PID}/root`));
    writeFileSync(join(folder, `proc/${PID}/status`), 'Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n');
    startAt(NEW_PROCESS);
    service = new SourceMapService(join(folder, 'proc'));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('are read in its root', () => {
    write('a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    write('a.js.map', MAP);
    expect(resolve('/a.js')).toMatchObject({ kind: 'places', places: [{ file: '/a.ts', line: 1 }] });
  });

  it('are looked for again for another program under its PID', () => {
    expect(resolve('/a.js').kind).toBe('none');
    write('a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    write('a.js.map', MAP);
    expect(resolve('/a.js').kind).toBe('none');
    expect(resolve('/a.js', 2).kind).toBe('places');
  });

  const isRoot = process.getuid?.() === 0;
  if (!isRoot) console.log('skipped: source maps of other users (needs root)');
  it.skipIf(!isRoot)('are not believed where another user than the script’s can change them', () => {
    write('a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    write('a.js.map', MAP);
    chownSync(join(root, 'a.js.map'), 1000, 1000);
    expect(resolve('/a.js', 1)).toEqual({ kind: 'refused' });
    chownSync(join(root, 'a.js'), 1000, 1000);
    expect(resolve('/a.js', 2)).toMatchObject({ kind: 'places' });
    chmodSync(join(root, 'a.js.map'), 0o666);
    expect(resolve('/a.js', 3)).toEqual({ kind: 'refused' });
  });

  it.skipIf(!isRoot)('are not read for a process that could not', () => {
    writeFileSync(join(folder, `proc/${PID}/status`), 'Uid:\t0\t33\t33\t33\nGid:\t0\t33\t33\t33\n');
    mkdirSync(join(root, 'private'), { mode: 0o750 });
    write('private/a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    write('private/a.js.map', MAP);
    expect(resolve('/private/a.js', 1)).toEqual({ kind: 'refused' });
    chownSync(join(root, 'private'), 0, 33);
    expect(resolve('/private/a.js', 2)).toMatchObject({ kind: 'places' });
    chmodSync(join(root, 'private/a.js.map'), 0o600);
    expect(resolve('/private/a.js', 3)).toEqual({ kind: 'refused' });
  });

  it('may lie beside their scripts without being named', () => {
    write('a.js', 'a()\n');
    expect(resolve('/a.js')).toEqual({ kind: 'none' });
    write('b.js', 'a()\n');
    write('b.js.map', MAP);
    expect(resolve('/b.js').kind).toBe('places');
  });

  it('never come from outside', () => {
    writeFileSync(join(folder, 'secret.map'), MAP);
    write('a.js', 'a()\n//# sourceMappingURL=../secret.map\n');
    expect(resolve('/a.js')).toEqual({ kind: 'none' });
    write('b.js', 'a()\n//# sourceMappingURL=link.map\n');
    symlinkSync('../secret.map', join(root, 'link.map'));
    expect(resolve('/b.js')).toEqual({ kind: 'none' });
  });

  it('are regular files', () => {
    write('a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    execFileSync('mkfifo', [join(root, 'a.js.map')]);
    expect(resolve('/a.js')).toEqual({ kind: 'refused' });
    write('b.js', 'a()\n//# sourceMappingURL=.\n');
    expect(resolve('/b.js')).toEqual({ kind: 'refused' });
  });

  it('are none where they are newer than the process, damaged, or the process is gone', () => {
    write('a.js', 'a()\n//# sourceMappingURL=a.js.map\n');
    write('a.js.map', '{"version":');
    expect(resolve('/a.js')).toEqual({ kind: 'malformed' });
    startAt(0);
    write('b.js', 'a()\n');
    expect(resolve('/b.js')).toEqual({ kind: 'changed' });
    expect(service.resolve({ pid: 1, execution: 2, file: '/a.js', places: [] })).toEqual({ kind: 'gone' });
  });
});
