import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadProfile, saveProfile } from './profile-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-files-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);
const link = (target: string, name: string): string => {
  symlinkSync(target, at(name));
  return at(name);
};

describe('a profile is not read', () => {
  it('from a device that never ends, or a directory', () => {
    expect(() => loadProfile(link('/dev/zero', 'zero.pb.gz'))).toThrow(
      "zero.pb.gz can't be read: it is a device",
    );
    expect(() => loadProfile(folder)).toThrow(`${folder} can't be read: it is a directory`);
  });

  it('from "-", which names no format', () => {
    expect(() => loadProfile('-')).toThrow('"-" has no ending that tells the format');
  });
});

it('is read from a pipe', () => {
  const fifo = at('pipe.folded');
  spawnSync('mkfifo', [fifo]);
  const many = `app;${'f;'.repeat(900)}main 1\n`.repeat(1000);
  writeFileSync(at('many'), many);
  spawnSync('sh', ['-c', 'cat "$0" >"$1" &', at('many'), fifo], { stdio: 'ignore' });
  expect(loadProfile(fifo).samples).toMatchObject([{ count: 1000 }]);
});

it('names the file that can not be written', () => {
  const source = at('a.folded');
  writeFileSync(source, 'app;main 1\n');
  const full = link('/dev/full', 'full.folded');
  expect(() => saveProfile(full, loadProfile(source))).toThrow("full.folded can't be written: ENOSPC");
  saveProfile(at('b.folded'), loadProfile(source));
  expect(readFileSync(at('b.folded'), 'utf8')).toBe('app;main 1\n');
});
