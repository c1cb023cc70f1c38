/** Against nm(1) and readelf(1), on files of this machine. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { buildElf } from '../../common/elf/build-elf.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { createProbeHandler, findAllocators, findFunctions } from './find-probes.ts';
import { findUsdt } from './find-usdt.ts';
import { findProbedFile } from './probed-file.ts';

const NODE = process.execPath;
const node = parseElf(bufferSource(readFileSync(NODE)));

/** What nm says of the symbol, as an offset in the file. */
function offsetOf(symbol: string): number | undefined {
  const lines = execFileSync('nm', ['-C', '--defined-only', NODE], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  }).split('\n');
  const line = lines.find((one) => /^\w+ [tTwW] /.test(one) && one.slice(19) === symbol);
  return line === undefined ? undefined : node.addressToFileOffset(Number.parseInt(line, 16));
}

test('a method of C++ is found by its name with parameters, or without', () => {
  const full =
    'v8::internal::Heap::CollectAllGarbage(v8::base::Flags<v8::internal::GCFlag, unsigned char, unsigned char>, v8::internal::GarbageCollectionReason, v8::GCCallbackFlags)';
  const short = 'v8::internal::Heap::CollectAllGarbage';
  const [withParameters, without] = [full, short].map(
    (symbol) => findFunctions(node, [], { symbol, offset: 0, isAtReturn: false }).found,
  );
  expect(without!.length).toBeGreaterThan(0);
  const expected = offsetOf(full);
  if (expected !== undefined)
    expect(withParameters).toContainEqual(expect.objectContaining({ offset: expected, semaphore: 0 }));
  for (const { offset } of without!) expect(offset).toBeGreaterThan(0);
});

test('a function of C is found, and so is an instruction behind its start', () => {
  const [at] = findFunctions(node, [], { symbol: 'uv_run', offset: 0, isAtReturn: false }).found;
  expect(at!.offset).toBe(offsetOf('uv_run'));
  const behind = findFunctions(node, [], { symbol: 'uv_run', offset: 4, isAtReturn: false }).found;
  expect(behind.map(({ offset }) => offset)).toEqual([at!.offset + 4]);
});

test('functions of an allocator are found, each place once', () => {
  const libc = readFileSync(findProbedFile('libc'));
  const { found } = findAllocators(parseElf(bufferSource(libc)), []);
  expect(found.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['malloc', 'calloc', 'realloc', 'posix_memalign', 'free']),
  );
  expect(new Set(found.map(({ offset }) => offset)).size).toBe(found.length);
});

test('what is not there is told by what is called alike', () => {
  const { found, similar } = findFunctions(node, [], { symbol: 'UV_RUN', offset: 0, isAtReturn: false });
  expect(found).toEqual([]);
  expect(similar.some((name) => name.startsWith('uv_run'))).toBe(true);
  expect(findUsdt(node, { provider: 'node', name: 'no_such' }).found).toEqual([]);
});

/** A table of symbols whose names are the ends of one text. */
function withSharedNames(symbols: number, text: string): Uint8Array {
  const entries = Buffer.alloc(24 * symbols);
  for (let i = 0; i < symbols; i++) {
    entries.writeUInt32LE(1 + (i % text.length), 24 * i);
    entries[24 * i + 4] = 2;
    entries.writeUInt16LE(1, 24 * i + 6);
  }
  return buildElf({
    sections: [
      { name: '.symtab', type: 2, link: 2, bytes: entries },
      { name: '.strtab', type: 3, bytes: Buffer.from(`\0${text}\0`) },
    ],
  });
}

test('names that share a long end take no time of their square, and are cut where they are suggested', () => {
  const elf = parseElf(bufferSource(withSharedNames(20_000, 'a'.repeat(200_000))));
  const start = performance.now();
  const search = (symbol: string) => findFunctions(elf, [], { symbol, offset: 0, isAtReturn: false });
  expect(search('aaaa')).toMatchObject({ found: [], similar: [] });
  expect(performance.now() - start).toBeLessThan(3000);

  const { similar } = findFunctions(
    parseElf(bufferSource(withSharedNames(100, `${'\x1b'.repeat(1000)}main`))),
    [],
    { symbol: 'MAIN', offset: 0, isAtReturn: false },
  );
  expect(similar).toEqual([`${'?'.repeat(99)}…`]);
});

test('a file that is cut short, or none, is told of, or has nothing', async () => {
  const whole = readFileSync('/bin/sh');
  for (const length of [64, 1000, whole.length >> 1, whole.length - 100]) {
    const cut = bufferSource(whole.subarray(0, length));
    const find = (): unknown =>
      findFunctions(parseElf(cut), [], { symbol: 'main', offset: 0, isAtReturn: false }).found;
    expect([[], 'ElfError']).toContainEqual(resultOf(find));
  }
  const fd = openSync('/etc/passwd', 'r');
  const request = { fd, path: '/etc/passwd', wanted: { provider: 'a', name: 'b' } };
  await expect((async () => createProbeHandler().handle(request, () => {}))()).rejects.toThrow('no ELF file');
  closeSync(fd);
});

function resultOf(find: () => unknown): unknown {
  try {
    return find();
  } catch (error) {
    return (error as Error).name;
  }
}
