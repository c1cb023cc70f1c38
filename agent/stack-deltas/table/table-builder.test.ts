/** The real worker: needs what `make` builds. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { computeFileId } from '../../../common/elf/file-id.ts';
import { createFileWorkers } from '../../workers/file-workers.ts';
import { buildTable } from './build-table.ts';
import { TableBuilder } from './table-builder.ts';

const workers = createFileWorkers();
const builder = new TableBuilder(workers);
const folder = mkdtempSync(join(tmpdir(), 'table-builder-'));
let fd = -1;
beforeAll(() => {
  fd = openSync(process.execPath, 'r');
});
afterAll(async () => {
  await builder.close();
  await workers.stop();
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

const sh = readFileSync('/bin/sh');

it('makes the table of an open file and of bytes alike, as it is made here', async () => {
  const shFd = openSync('/bin/sh', 'r');
  const [fromFd, fromBytes] = await Promise.all([builder.buildFromFd(shFd), builder.buildFromBytes(sh)]);
  closeSync(shFd);
  expect(fromBytes).toEqual(fromFd);
  expect(fromFd).toEqual(buildTable(bufferSource(sh)));
  expect(fromFd).toMatchObject({
    kind: 'built',
    executable: { fileId: computeFileId(bufferSource(sh)), badFdes: 0 },
  });
});

it('answers in order, and says what is not an ELF file or cut short', async () => {
  const path = join(folder, 'cut');
  writeFileSync(path, sh.subarray(0, 5000));
  const cut = openSync(path, 'r');
  const results = await Promise.all([
    builder.buildFromBytes(Buffer.from('#!/bin/sh\necho hello, I am no ELF file, however long I may be')),
    builder.buildFromFd(cut),
    builder.buildFromFd(fd),
    builder.buildFromFd(99_999),
  ]);
  closeSync(cut);
  // of the cut one the headers are there, what they speak of is not
  expect(results.map((r) => r.kind)).toEqual(['not-elf', 'built', 'built', 'crashed']);
});

it('reports a language runtime before it has made the table', async () => {
  const events: string[] = [];
  const built = builder.buildFromFd(fd, undefined, ({ runtime }) => events.push(runtime));
  const result = await built.then((made) => {
    events.push(made.kind);
    return made;
  });
  expect(events).toEqual(['v8', 'built']);
  expect(result).toMatchObject({ executable: { runtime: { runtime: 'v8' } } });
});

it('settles what waits when it is closed, and what comes later', async () => {
  const other = new TableBuilder(workers);
  const waiting = [other.buildFromFd(fd), other.buildFromFd(fd)];
  await other.close();
  waiting.push(other.buildFromBytes(sh));
  for (const result of await Promise.all(waiting))
    expect(result).toEqual({ kind: 'crashed', reason: 'the worker was stopped' });
});
