/** The real process: needs the compiled dist/. */
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { readFile } from './read-file.ts';

const placement = { endMs: undefined, fallbackEndMs: Date.UTC(2026, 0, 1), processName: 'file' };
const read = (fileName: string, text: string | Buffer, limits?: { heapMiB: number; residentMiB: number }) =>
  readFile({ fileName, placement }, Buffer.from(text), limits);

it('reads a file as a request, stacks as deep as those of files included', async () => {
  const deep = Array.from({ length: 70_000 }, (_, i) => `f${i}`).join(';');
  const { profiles, rejected } = decodeOtlp(await read('a.folded', `p;main;f 3\np;main;g 4\n${deep} 2\n`));
  const counts = profiles.flatMap(({ samples }) => samples.map(({ value }) => value));
  expect([rejected, counts]).toEqual([0, [3, 4, 2]]);
});

it('takes a file whose name says nothing by its content', async () => {
  const { profiles } = decodeOtlp(await read('noext', 'p;main;f 3\n'));
  expect(profiles.flatMap(({ samples }) => samples.map(({ value }) => value))).toEqual([3]);
});

it('outlives a reader that comes to the limit of its heap, or holds too much besides it', async () => {
  const many = Buffer.from(`[${'{},'.repeat(2_000_000)}{}]`);
  const inHeap = read('a.json', many, { heapMiB: 40, residentMiB: 2000 });
  await expect(inHeap).rejects.toThrow('a.json could not be read: it takes more than 40 MiB of memory');
  const inAll = read('a.json', many, { heapMiB: 700, residentMiB: 90 });
  await expect(inAll).rejects.toThrow('a.json could not be read: it takes more than 90 MiB of memory');
});

it('says what is wrong with a file', async () => {
  await expect(read('a.folded', '')).rejects.toThrow('a.folded');
  await expect(read('a.pb.gz', '')).rejects.toThrow('a.pb.gz is empty');
  await expect(read('passwd', 'root:x:0\n')).rejects.toThrow(
    /^passwd looks like no format that can be read \(pprof, .*\): give it a name with its format's ending/,
  );
  await expect(read('a.pb.gz', gzipSync('x').subarray(0, 12))).rejects.toThrow("a.pb.gz can't be unpacked");
  const bomb = gzipSync(Buffer.alloc(300 * 2 ** 20), { level: 1 });
  await expect(read('a.pb.gz', bomb)).rejects.toThrow('unpacks to more than 268435456 bytes');
});
