/** Names that come later: frames as agents send them that name nothing, and files that are given to the collector. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '../collector/main.ts';
import type { Location } from '../common/profile/model/profile.ts';
import { encodeOtlp } from './browser/encode-otlp.ts';
import { Pusher } from './browser/push.ts';
import { buildStripped, namelessProfile, type StrippedProgram } from './support/stripped-program.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-symbols-'));
let program: StrippedProgram;
let collector: Collector | undefined;

beforeAll(() => {
  program = buildStripped(directory);
});
afterEach(async () => {
  await collector?.stop();
  collector = undefined;
});
afterAll(() => rmSync(directory, { recursive: true }));

async function start(data?: string): Promise<Collector> {
  const logger = { info: () => {}, warn: () => {}, error: (...what: unknown[]) => expect.fail(String(what)) };
  collector = await startCollector({
    grpcListen: '127.0.0.1:0',
    httpListen: '127.0.0.1:0',
    pageListen: '127.0.0.1:0',
    maxMemoryBytes: 2 ** 26,
    ...(data !== undefined && { data: { directory: data, maxBytes: 2 ** 30 } }),
    logger,
  });
  return collector;
}

async function push({ urls }: Collector): Promise<void> {
  const pusher = new Pusher(urls.grpc);
  await pusher.push(encodeOtlp(namelessProfile(program)));
  pusher.close();
}

const give = ({ urls }: Collector, bytes: Uint8Array, name = 'file'): Promise<Response> =>
  fetch(`${urls.page}api/v1/symbols?name=${name}`, {
    method: 'POST',
    body: Buffer.from(bytes),
    headers: { 'content-type': 'application/octet-stream' },
  });

// biome-ignore lint/suspicious/noExplicitAny: what is in it is what is tested
const readJson = (answer: Response): Promise<any> => answer.json();

/** Stacks of the flame graph, root first. */
async function stacks({ urls }: Collector, query = ''): Promise<string[]> {
  const { strings, frames, nodes } = await readJson(await fetch(`${urls.page}api/v1/tree?range=15m${query}`));
  const paths: string[] = [''];
  const found: string[] = [];
  for (let node = 1; node < nodes.parent.length; node++) {
    const name = strings[frames.name[nodes.frame[node]]];
    paths[node] = `${paths[nodes.parent[node]]};${name}`.replace(/^;/, '');
    if (nodes.self[node] > 0) found.push(`${paths[node]} ${nodes.self[node]}`);
  }
  return found.sort();
}

/** Addresses of the program are five bytes behind the begin of their function. */
const begin = (place: Location): Location => ({ ...place, functionStart: Number(place.address) - 5 });

const NAMED = ['demo;main;outer;inner 5', 'demo;main;outer;sum 3'];

describe('POST /api/v1/symbols', () => {
  it('names what is stored and what comes later, by the build ID of the program that ran', async () => {
    const running = await start();
    await push(running);
    expect((await stacks(running)).every((stack) => /^demo;demo\+0x[0-9a-f]+;/.test(stack))).toBe(true);
    // What ran was stripped, and its debug file has its build ID.
    const answer = await (await give(running, readFileSync(program.debugPath))).json();
    expect(answer).toMatchObject({ gnuBuildId: program.gnuBuildId, nameless: 4, named: 4 });
    expect(await stacks(running)).toEqual(NAMED);
    await push(running);
    await expect
      .poll(() => stacks(running))
      .toEqual(NAMED.map((stack) => stack.replace(/\d$/, (n) => `${2 * Number(n)}`)));
  });

  it.each([
    ['in memory', undefined],
    ['on disk', 'boxes'],
  ])('names each address of functions that were one box until then, %s', async (_, folder) => {
    const data = folder && join(directory, folder);
    let running = await start(data);
    const { locations, stacks: own, samples, ...rest } = namelessProfile(program);
    const [inner, sum] = ['inner', 'sum'].map((name) => program.addresses.get(name)!);
    const begun = locations.map((place) =>
      place.lines.length > 0 || place.address === 0n ? place : begin(place),
    );
    const again = begun.push({ ...begun[3]!, address: begun[3]!.address + 1n }) - 1;
    const stack = own.push(Uint32Array.of(again, ...own[1]!.subarray(1))) - 1;
    const more = { ...samples[0]!, stack, value: 1, timestamps: samples[0]!.timestamps.slice(0, 1) };
    const pusher = new Pusher(running.urls.grpc);
    await pusher.push(encodeOtlp({ ...rest, locations: begun, stacks: own, samples: [...samples, more] }));
    pusher.close();
    if (data !== undefined) {
      await running.stop();
      running = await start(data);
    }
    const placeOf = (address: bigint, count: number) =>
      expect.stringMatching(`;demo\\+0x${(address - 5n).toString(16)} ${count}$`);
    expect(await stacks(running)).toEqual(expect.arrayContaining([placeOf(inner!, 6), placeOf(sum!, 3)]));
    const answer = await (await give(running, readFileSync(program.debugPath))).json();
    expect(answer).toMatchObject({ nameless: 5, named: 5 });
    expect(await stacks(running)).toEqual(NAMED.map((named) => named.replace('5', '6')));
  });

  it('finds them by filters, and keeps them across a restart', async () => {
    const data = join(directory, 'data');
    let running = await start(data);
    await push(running);
    expect((await give(running, readFileSync(program.path))).status).toBe(200);
    await running.stop();
    running = await start(data);
    expect(await stacks(running)).toEqual(NAMED);
    expect(await stacks(running, '&where=frame%3Dinner')).toEqual(NAMED.slice(0, 1));
    expect(await stacks(running, '&transform=focus%3Douter')).toEqual([
      'demo;outer;inner 5',
      'demo;outer;sum 3',
    ]);
  });

  it('leaves frames of another build as they are', async () => {
    const running = await start();
    await push(running);
    const other = mkdtempSync(join(directory, 'other-'));
    const { path } = buildStripped(other, '-DOTHER');
    expect(await (await give(running, readFileSync(path))).json()).toMatchObject({ nameless: 0, named: 0 });
    expect((await stacks(running)).join()).toContain('demo+0x');
  });

  it.each([
    ['not an ELF file', Buffer.from('#!/bin/sh\n'), /not an ELF file/],
    ['a header alone', Buffer.from('\x7fELF\x02\x01\x01'), /notes can't be read: /],
    ['nothing', Buffer.alloc(0), /notes can't be read: /],
  ])('says what is wrong with %s', async (_, bytes, message) => {
    const answer = await give(await start(), bytes, 'notes');
    expect(answer.status).toBe(422);
    expect((await readJson(answer)).error).toMatch(message);
  });

  it('refuses a file without names, and says which one to give', async () => {
    const answer = await give(await start(), readFileSync(program.strippedPath), 'bare');
    expect(answer.status).toBe(422);
    expect((await readJson(answer)).error).toContain(program.gnuBuildId);
  });
});
