import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { emptyProfile } from '../../common/profile/model/profile.ts';
import { checkOutput, droppedTypes, loadOneType, loadProfiles, saveProfiles } from './profile-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-files-'));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);
const link = (target: string, name: string): string => {
  symlinkSync(target, at(name));
  return at(name);
};

const save = async (output: string, flags = {}): Promise<void> =>
  saveProfiles({ output, ...flags }, await loadProfiles(at('a.folded')));
writeFileSync(at('a.folded'), 'app;main 1\n');

describe('a profile is not read', () => {
  it('from a device that never ends, or a directory', async () => {
    await expect(loadProfiles(link('/dev/zero', 'zero.pb.gz'))).rejects.toThrow(
      "zero.pb.gz can't be read: it is a device",
    );
    await expect(loadProfiles(folder, { from: 'folded' })).rejects.toThrow(
      `${folder} can't be read: it is a directory`,
    );
  });

  it('where it would cost more than it may', async () => {
    // 20 million empty strings in 90 kB
    const strings = Buffer.alloc(40_000_000, Buffer.of(0x32, 0));
    writeFileSync(at('bomb.pb.gz'), gzipSync(strings, { level: 1 }));
    await expect(loadProfiles(at('bomb.pb.gz'), { maxMemory: 64 << 20 })).rejects.toThrow(
      /bomb\.pb\.gz would need more than 64 MiB of memory \(at [\d,]+ strings\): give --max-memory 1GiB/,
    );
  });

  it('where it unpacks to hundreds of times its size', async () => {
    writeFileSync(at('lines.folded.gz'), gzipSync(Buffer.alloc(300 << 20, ' \n'), { level: 1 }));
    await expect(loadProfiles(at('lines.folded.gz'))).rejects.toThrow(
      'lines.folded.gz unpacks to more than 200 times its size: unpack it with gunzip to read it all the same',
    );
  });

  it('where it is packed by what is not unpacked here', async () => {
    writeFileSync(at('z.folded.zst'), Buffer.from('28b52ffd04000100', 'hex'));
    await expect(loadProfiles(at('z.folded.zst'))).rejects.toThrow(
      'z.folded.zst is packed by zstd: unpack it with zstd -d, or pack it with gzip',
    );
  });

  it('where it is packed and cut', async () => {
    writeFileSync(at('cut.folded.gz'), gzipSync('app;main 1\n'.repeat(1000)).subarray(0, 40));
    await expect(loadProfiles(at('cut.folded.gz'))).rejects.toThrow(/cut\.folded\.gz can't be unpacked: /);
  });
});

it('is read from a pipe', async () => {
  const fifo = at('pipe.folded');
  spawnSync('mkfifo', [fifo]);
  const many = `app;${'f;'.repeat(900)}main 1\n`.repeat(1000);
  writeFileSync(at('many'), many);
  spawnSync('sh', ['-c', 'cat "$0" >"$1" &', at('many'), fifo], { stdio: 'ignore' });
  expect((await loadProfiles(fifo)).profiles[0]!.samples).toMatchObject([{ value: 1000 }]);
});

describe('a file whose name says no format', () => {
  it.each([
    'a.folded',
    'a.pb.gz',
    'a.otlp',
    'a.otlp.json',
    'a.speedscope.json',
    'a.firefox.json',
    'a.trace.json',
  ])('is read by its content as %s is', async (name) => {
    if (name !== 'a.folded') await save(at(name));
    copyFileSync(at(name), at('cpu.out'));
    expect((await loadOneType(at('cpu.out'))).samples.length).toBe(1);
  });

  it('is read as folded stacks also where the first of them is longer than what is looked at', async () => {
    writeFileSync(at('deep'), `app;${'f;'.repeat(40_000)}main 1\napp;main 1\n`);
    expect((await loadOneType(at('deep'))).samples.length).toBe(2);
  });

  it.each([
    ['README', 'of something else'],
    ['users', 'root:x:0:0:root:/root:/bin/bash\n'],
    ['hello', 'Hi\n'],
    ['list', '\nHello\n'],
    ['program', Buffer.concat([Buffer.from('7f454c46020101', 'hex'), Buffer.alloc(200_000)])],
    ['picture.png', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
  ])('is refused where it looks like none: %s', async (name, content) => {
    writeFileSync(at(name), content);
    await expect(loadProfiles(at(name))).rejects.toThrow(
      `${name} looks like no format that can be read (pprof, folded, otlp, `,
    );
    await expect(loadProfiles(at(name))).rejects.toThrow('): --from FORMAT says what it is');
  });

  it('is refused where it is empty, a report, or not there', async () => {
    writeFileSync(at('nothing'), '');
    await expect(loadProfiles(at('nothing'))).rejects.toThrow('nothing is empty');
    await save(at('report.txt'));
    copyFileSync(at('report.txt'), at('report'));
    await expect(loadProfiles(at('report'))).rejects.toThrow('it is a report, which');
    await expect(loadProfiles(at('none'))).rejects.toThrow(
      "none can't be read: there is no such file or directory",
    );
  });
});

describe('an output', () => {
  it('that exists is overwritten with --force only, an input never', async () => {
    const flags = { output: at('there.folded') };
    writeFileSync(flags.output, 'old');
    expect(() => checkOutput(flags)).toThrow('there.folded exists: give --force to overwrite it');
    await expect(save(flags.output)).rejects.toThrow(/there\.folded exists by now/);
    expect(readFileSync(flags.output, 'utf8')).toBe('old');
    checkOutput({ ...flags, force: true });
    await save(flags.output, { force: true });
    expect(readFileSync(flags.output, 'utf8')).toBe('app;main 1\n');
    const same = link(at('a.folded'), 'same.folded');
    expect(() => checkOutput({ output: same, force: true }, [at('a.folded')])).toThrow('is an input');
  });

  it('names the file that can not be written, and leaves nothing behind', async () => {
    const full = link('/dev/full', 'full.folded');
    checkOutput({ output: full });
    await expect(save(full)).rejects.toThrow("full.folded can't be written: the disk is full");
    await save(at('b.folded'));
    expect(readFileSync(at('b.folded'), 'utf8')).toBe('app;main 1\n');
    expect(() => checkOutput({ output: at('none/b.folded') })).toThrow(
      "b.folded can't be written: there is no directory ",
    );
    expect(() => checkOutput({ output: folder })).toThrow(/is a directory|unknown output format/);
    expect(readdirSync(folder).filter((name) => name.startsWith('.b.'))).toEqual([]);
  });
});

it('says which types a file, or standard output, has no room for', () => {
  const ofType = (type: string) => ({
    ...emptyProfile(),
    type: { ...emptyProfile().type, sampleType: { type, unit: 'bytes' } },
  });
  const set = { profiles: [ofType('inuse_space'), ofType('alloc_space')], main: 0 };
  expect(droppedTypes({ output: 'a.folded' }, set)).toMatch(
    /^a\.folded holds inuse_space.*left out: alloc_space/,
  );
  expect(droppedTypes({ output: '-', format: 'folded' }, set)).toMatch(/^standard output holds inuse_space/);
});
