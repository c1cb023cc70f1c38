/** Files into a collector, by the command and over HTTP. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeProfile } from '../common/profile/formats/formats.ts';
import { profileFromText } from './browser/synthetic-profile.ts';
import { EVERYFRAME, type RunningCollector, startCollectorProcess } from './support/collector.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-import-'));
const data = join(folder, 'data');
const TEXT = 'sh:10;main@n;write@n;vfs_write@k 6\nnode:12;main@n;render@j 4';
let collector: RunningCollector;

interface Top {
  samples: number;
  functions: { name: string; self: number; total: number }[];
}

const run = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
  try {
    const { stdout, stderr } = await promisify(execFile)(EVERYFRAME, ['collector', 'import', ...args]);
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
};
const save = (name: string, endMs = Date.now()): string => {
  const path = join(folder, name);
  writeFileSync(path, writeProfile(name, profileFromText(TEXT, { endMs, spanMs: 1000 })));
  return path;
};
const top = (where: string): Promise<Top> =>
  collector.query<Top>(`/api/v1/top?range=all&where=${encodeURIComponent(where)}`);

beforeAll(async () => {
  collector = await startCollectorProcess('--data', data);
});

afterAll(async () => {
  await collector.end();
  rmSync(folder, { recursive: true });
});

describe('everyframe collector import', () => {
  it('takes every format that has counts, and what it held is found by its processes', async () => {
    const names = ['a.pb.gz', 'b.folded', 'c.otlp', 'd.otlp.json', 'e.speedscope.json', 'f.firefox.json'];
    const { code, out, err } = await run('--url', collector.page, ...names.map((name) => save(name)));
    expect([code, err]).toEqual([0, '']);
    expect(out.match(/: 10 samples, /g)?.length).toBe(names.length);
    const { samples, functions } = await top('process=sh');
    expect(samples).toBe(6 * names.length);
    const write = functions.filter(({ name }) => name === 'write');
    expect(write.reduce((sum, { total }) => sum + total, 0)).toBe(samples);
    expect((await top('process=node')).samples).toBe(4 * names.length);
  });

  it('adds a file once, and again where it is to be another time', async () => {
    // with times in it: without them it would be the file of the test before, where both are written in one second
    const path = save('again.pb.gz', Date.now() - 5000);
    const before = (await top('')).samples;
    await run('--url', collector.page, path);
    expect((await run('--url', collector.page, path)).out).toMatch(/imported before, nothing added/);
    // equal queries share an answer for a second
    await expect.poll(async () => (await top('')).samples).toBe(before + 10);
    await run('--url', collector.page, '--at', '2026-01-01T00:00:00Z', path);
    await run('--url', collector.page, '--at', '-1h', path);
    await expect.poll(async () => (await top('')).samples).toBe(before + 20);
  });

  it('says which file is wrong, and where the collector is not', async () => {
    const bad = join(folder, 'bad.folded');
    writeFileSync(bad, 'junk');
    expect(await run('--url', collector.page, bad)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/bad\.folded is not a \.folded profile: line 1/),
    });
    expect((await run('--url', 'http://127.0.0.1:1', save('x.folded'))).err).toMatch(/no collector answers/);
    expect((await run('--data', data, save('x.folded'))).err).toMatch(
      /is in use by process \d+: give its --url instead/,
    );
  });

  it('writes into a directory that no collector uses, at the time when the file was written', async () => {
    const other = join(folder, 'other');
    const path = save('old.folded');
    const writtenS = Math.floor(Date.now() / 1000) - 7200;
    utimesSync(path, writtenS, writtenS);
    expect((await run('--data', other, path)).out).toMatch(/10 samples, .*on the page choose that time/);
    const reopened = await startCollectorProcess('--data', other);
    const found = await reopened.query<{ samples: number; fromMs: number }>('/api/v1/top?range=all');
    expect(found).toMatchObject({ samples: 10, fromMs: writtenS * 1000 });
    await reopened.end();
  });
});

describe('everyframe collector import of a program', () => {
  /** A profile of one address in `work` that arrived without a name, as a stripped program sends it. */
  const build = (): { program: string; profile: string } => {
    const program = join(folder, 'program');
    writeFileSync(`${program}.c`, 'int work(int n) { return n + 1; } int main(void) { return work(1); }');
    execFileSync('gcc', ['-g', '-Wl,--build-id=sha1', '-o', program, `${program}.c`]);
    const notes = execFileSync('readelf', ['-n', program], { encoding: 'utf8' });
    const address = execFileSync('nm', [program], { encoding: 'utf8' }).match(/^(\w+) T work$/m)![1]!;
    const made = profileFromText('nameless:1;work@n 5', { endMs: Date.now(), spanMs: 1000 });
    const location = made.locations.at(-1)!;
    location.lines = [];
    location.address = BigInt(`0x${address}`) + 2n;
    made.mappings[location.mapping]!.gnuBuildId = notes.match(/Build ID: (\w+)/)![1]!;
    made.mappings[location.mapping]!.fileId = '';
    const profile = join(folder, 'nameless.otlp');
    writeFileSync(profile, writeProfile(profile, made));
    return { program, profile };
  };

  it('names what a running collector has stored', async () => {
    const { program, profile } = build();
    const where = encodeURIComponent('process=nameless');
    expect((await run('--url', collector.page, profile)).out).toMatch(/5 samples/);
    expect((await run('--url', collector.page, program)).out).toMatch(
      /^program: names from DWARF.* are kept; 1 of 1 stored addresses without a name have one now$/m,
    );
    const { functions } = await collector.query<Top>(`/api/v1/top?range=15m&where=${where}`);
    expect(functions.map(({ name }) => name)).toEqual(['work']);
  });

  it('keeps it in the directory of one that does not run', async () => {
    const other = join(folder, 'named');
    const { program, profile } = build();
    const { code, out, err } = await run('--data', other, profile, program);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/1 of 1 stored addresses without a name have one now/);
    const reopened = await startCollectorProcess('--data', other);
    const { functions } = await reopened.query<Top>('/api/v1/top?range=all');
    await reopened.end();
    expect(functions.map(({ name }) => name)).toEqual(['work']);
  });

  it('says why a file names nothing', async () => {
    const cut = join(folder, 'cut');
    writeFileSync(cut, '\x7fELF and nothing else');
    expect(await run('--url', collector.page, cut)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cut can't be read: /),
    });
  });
});

describe('POST /api/v1/import', () => {
  const post = (
    query: string,
    body: string | Uint8Array<ArrayBuffer>,
    headers: Record<string, string> = {},
  ): Promise<Response> =>
    fetch(new URL(`/api/v1/import?${query}`, collector.page), {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/octet-stream', ...headers },
    });

  it('takes a file from its own page', async () => {
    const origin = new URL(collector.page).origin;
    const answer = await post('name=drop.folded&at=now', 'dropped;main;work 7', { origin });
    expect(await answer.json()).toMatchObject({ fileName: 'drop.folded', samples: 7, repeated: false });
    expect((await top('process=dropped')).samples).toBe(7);
  });

  it.each([
    ['a page of another origin', 'name=a.folded', { origin: 'http://attacker.example' }, 403],
    ['a page without an origin', 'name=a.folded', { origin: 'null' }, 403],
    ['a form', 'name=a.folded', { 'content-type': 'text/plain' }, 415],
    ['no name', '', {}, 400],
    ['a time that is none', 'name=a.folded&at=noon', {}, 400],
    ['an unknown ending', 'name=a.exe', {}, 422],
    ['no samples', 'name=a.folded', {}, 422],
  ])('refuses %s', async (_, query, headers, status) => {
    const answer = await post(query, '', headers);
    expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([status, ['error']]);
  });

  it('refuses a file that is too large, and one that unpacks to too much, and stays up', async () => {
    const large = await post('name=a.folded', 'x'.repeat(64 * 2 ** 20 + 1)).catch(() => undefined);
    if (large !== undefined) expect(large.status).toBe(413);
    const bomb = await post('name=a.pb.gz', new Uint8Array(gzipSync(Buffer.alloc(256 * 2 ** 20 + 1))));
    expect(bomb.status).toBe(422);
    expect(await bomb.text()).toMatch(/a\.pb\.gz can't be unpacked: it unpacks to more than 268435456 bytes/);
    expect((await collector.query<Top>('/api/v1/top')).samples).toBeGreaterThan(0);
  });
});
