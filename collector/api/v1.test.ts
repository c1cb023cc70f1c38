import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Profile as Pprof } from 'pprof-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProfiles } from '../../common/profile/formats/formats.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { linkedProfile } from '../../test/support/store-links.ts';
import { ReceiverStats } from '../ingest/receiver-stats.ts';
import { readProfile } from '../query/export.ts';
import { SOLE_TENANT } from '../settings/tenants.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { SymbolSources } from '../symbols/symbol-sources.ts';
import { startPageServer } from './page-server.ts';
import type { ShownTenant } from './tenant-page.ts';

let server: Awaited<ReturnType<typeof startPageServer>>;
let endMs = 0;
const SPAN = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const folder = mkdtempSync(join(tmpdir(), 'everyframe-v1-'));

const sole = (tenant: ShownTenant): Map<string, ShownTenant> => new Map([[SOLE_TENANT, tenant]]);

beforeAll(async () => {
  const now = Date.now;
  endMs = now();
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  const text = 'sh:10;main@n;fib@n;fib@n;vfs_write@k 6\nnode:12;main@n;render@j 4\nnode:12;main@n;fib@n 2';
  const profile = profileFromText(text, { endMs, spanMs: 1000 });
  for (const process of profile.processes)
    process.attributes = attributesText([['k8s.pod.name', process.pid === 10 ? 'web-1' : 'web-2']]);
  store.append(profile);
  store.append(linkedProfile('go:20;main@n;serve@g 3', endMs - 20 * 60_000, SPAN));
  store.append(
    profileFromText('node:12;main@n;parse@j 8', { endMs: endMs - 60_000, spanMs: 1000, host: 'db' }),
  );
  server = await startPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    files: new Map(),
    tenants: sole({
      status: { stats: new ReceiverStats(), store, listen: { grpc: 'g', http: 'h' }, startedMs: now() },
      symbols: new SymbolSources(undefined, { error: expect.fail }),
    }),
    now,
    logger: { error: (message: unknown) => expect.fail(`logged ${JSON.stringify(message)}`) },
  });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const fetchPath = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${server.port}${path}`);
// biome-ignore lint/suspicious/noExplicitAny: answers are checked against their schema and by what is expected
const get = async (path: string): Promise<any> => (await fetchPath(`/api/v1/${path}`)).json();

const PATHS = [
  'tree?range=15m&where=process%3Dsh',
  'top',
  'callers?function=fib',
  'timeline?by=process&steps=10',
  'heatmap?columns=10&rows=5',
  'types',
  'labels',
  'values?label=process',
  'diff?from=-30s&base_from=-2m&base_to=-30s',
  'samples?limit=5',
  'threads?contains=sh',
  'lanes?steps=10&limit=3',
  'source?file=/srv/app.py',
  'health',
  'status',
  'difftree?from=-30s&base_from=-2m&base_to=-30s',
];

describe('/api/v1', () => {
  it('knows traces and spans: which a function ran in, and what ran in one', async () => {
    const time = 'from=-30m&to=-10m';
    expect((await get('labels?from=-30s')).labels).not.toContain('trace_id');
    expect((await get(`labels?${time}`)).labels).toEqual(expect.arrayContaining(['trace_id', 'span_id']));
    const { values } = await get(`values?label=span_id&${time}&where=frame%3Dserve`);
    expect(values).toEqual([{ value: SPAN.spanId, samples: 3 }]);
    const { groups } = await get(`timeline?by=trace_id&${time}`);
    expect(groups).toMatchObject([{ value: SPAN.traceId, samples: 3 }]);
    expect((await get(`tree?${time}&where=trace_id%3D${SPAN.traceId}`)).samples).toBe(3);
    expect((await get(`tree?${time}&where=trace_id%3D${SPAN.spanId}`)).samples).toBe(0);
    const otlp = await (await fetchPath(`/api/v1/export?format=otlp&${time}`)).arrayBuffer();
    const [exported] = decodeOtlp(new Uint8Array(otlp)).profiles;
    expect(exported!.links[exported!.samples[0]!.link!]).toEqual(SPAN);
  });

  it('answers as its OpenAPI document says, each path of it', async () => {
    const document = await get('openapi.json');
    const described = Object.keys(document.paths).filter(
      (path) => path !== '/api/v1/export' && document.paths[path].get !== undefined,
    );
    expect(PATHS.map((path) => `/api/v1/${path.split('?')[0]}`).sort()).toEqual(described.sort());
    const ajv = new Ajv2020({ allErrors: true, strict: false });
    for (const path of PATHS) {
      const { get: operation } = document.paths[`/api/v1/${path.split('?')[0]}`];
      const { schema } = operation.responses[200].content['application/json'];
      const answer = await get(path);
      expect(ajv.validate(schema, answer), `${path}: ${ajv.errorsText()}`).toBe(true);
    }
  });

  it('counts a recursion once in the total, and wholly in the function itself', async () => {
    const { functions, samples } = await get('top?from=-30s');
    expect(samples).toBe(12);
    expect(functions.find(({ name }: { name: string }) => name === 'fib')).toMatchObject({
      self: 2,
      total: 8,
    });
    expect(functions[0]).toMatchObject({ name: 'vfs_write', self: 6, total: 6, kind: 'kernel' });
  });

  it('names attributes that samples have, their values, and stacks time by them', async () => {
    expect((await get('labels?from=-30s')).attributes).toEqual(['k8s.pod.name']);
    expect((await get('labels?from=-10m&to=-5m')).attributes).toEqual([]);
    const { values } = await get('values?label=k8s.pod.name&where=process%3Dsh,node&from=-30s');
    expect(values).toEqual([
      { value: 'web-1', samples: 6 },
      { value: 'web-2', samples: 6 },
    ]);
    const { groups } = await get('timeline?by=k8s.pod.name&steps=1&from=-30s&where=k8s.pod.name~2$');
    expect(groups).toEqual([{ value: 'web-2', samples: 6, counts: [6] }]);
    expect(await get('values?label=proces')).toMatchObject({
      error: expect.stringContaining('"proces" is not a key'),
    });
  });

  it('moves an aligned range by whole steps, and counts its CPU time', async () => {
    for (const [path, stepMs] of [
      ['range=60s&align=1', 500],
      ['range=15m&align=1', 7500],
    ] as const) {
      const { fromMs, toMs, samples, cpuNanos } = await get(`timeline?${path}`);
      expect(toMs % stepMs).toBe(0);
      expect(toMs - fromMs).toBe(120 * stepMs);
      expect(toMs).toBeGreaterThan(endMs);
      expect(cpuNanos).toBe(samples * 50_000_000);
    }
    const all = await get('tree?range=all&align=1');
    expect(all.samples).toBe(23);
    expect(all.toMs % 500).toBe(0);
  });

  it('says who calls a function and what it calls', async () => {
    const { functionSamples, callers, callees } = await get('callers?from=-30s&function=fib');
    expect(functionSamples).toBe(8);
    expect(linesOf(callers)).toEqual(['fib;main;node 2', 'fib;main;sh 6']);
    expect(linesOf(callees)).toEqual(['fib 2', 'fib;fib;vfs_write 6']);
  });

  it.each([
    ['process=sh', 6],
    ['process=sh,node host!=db', 12],
    ['host.name=db', 8],
    ['kind=kernel', 6],
    ['kind!=kernel', 14],
    ['frame~"^(render|parse)$"', 12],
    ['cpu=0', 6 + 2 + 8],
    ['process~^n thread=node pid=12 cpu=1', 4],
    ['process=nothing', 0],
  ])('filters by %s', async (where, expected) => {
    const { samples, allSamples } = await get(`top?where=${encodeURIComponent(where)}`);
    expect({ samples, allSamples }).toEqual({ samples: expected, allSamples: 20 });
    const { total, rows } = await get(`samples?where=${encodeURIComponent(where)}`).then((answer) => ({
      total: answer.samples,
      rows: answer.times,
    }));
    expect(total).toBe(expected);
    expect(rows).toEqual([...rows].sort((a: number, b: number) => a - b));
  });

  it('compares two windows', async () => {
    const { base, now, functions } = await get('diff?from=-30s&base_from=-2m&base_to=-30s');
    expect([base.samples, now.samples]).toEqual([8, 12]);
    expect(functions[0]).toMatchObject({ name: 'parse', baseSelf: 8, self: 0, selfShareChange: -1 });
  });

  it('sums to the same events in every view', async () => {
    const timeline = await get('timeline?by=host');
    expect(timeline.groups.map(({ value, samples }: never) => [value, samples])).toEqual([
      ['test-host', 12],
      ['db', 8],
    ]);
    const { cells, cpus } = await get('heatmap');
    expect(cells.reduce((a: number, b: number) => a + b)).toBe(20);
    expect(cpus).toBe((await get('top')).cpus);
    expect((await get('heatmap?where=host%3Ddb')).cpus).toBe(cpus);
    const { values } = await get('values?label=cpu');
    expect(values).toEqual([
      { value: '0', samples: 16 },
      { value: '1', samples: 4 },
    ]);
  });

  it('shows the whole of a long time in steps, and lists threads by what is looked for', async () => {
    const all = await get('samples?limit=5&steps=4&from=-30s');
    expect(all).toMatchObject({ samples: 12, returned: 12, stepMs: expect.any(Number) });
    expect(Math.max(...all.times)).toBeGreaterThanOrEqual(all.fromMs + 2 * all.stepMs);
    expect((await get('samples?limit=50&steps=4&from=-30s')).stepMs).toBeUndefined();
    const { threads, threadCount } = await get('threads?from=-30s&contains=SH');
    expect({ threads, threadCount }).toEqual({
      threads: [{ process: 'sh', pid: 10, thread: 'sh', tid: 10, host: 'test-host', samples: 6 }],
      threadCount: 1,
    });
    expect((await get('threads?from=-30s')).threads).toHaveLength(2);
  });

  it('knows a thread again in each part of the store', async () => {
    const now = () => Date.UTC(2026, 0, 1, 12, 1, 30);
    const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
    store.append(profileFromText('sh:10;main@n 40', { endMs: now(), spanMs: 180_000 }));
    expect((await store.parts({ fromMs: 0, toMs: now() + 1 })).length).toBeGreaterThan(1);
    const other = await startPageServer({
      listen: { host: '127.0.0.1', port: 0 },
      files: new Map(),
      tenants: sole({
        status: { stats: new ReceiverStats(), store, listen: { grpc: 'g', http: 'h' }, startedMs: now() },
        symbols: new SymbolSources(undefined, { error: expect.fail }),
      }),
      now,
      logger: { error: (message: unknown) => expect.fail(`logged ${JSON.stringify(message)}`) },
    });
    const answer = await fetch(`http://127.0.0.1:${other.port}/api/v1/samples?range=15m`);
    // biome-ignore lint/suspicious/noExplicitAny: what is in it is what is tested
    const { threadTable, threads }: any = await answer.json();
    await other.stop();
    expect(threadTable).toHaveLength(1);
    expect(threads).toEqual(Array(40).fill(0));
  });

  it('exports a stack once, however many parts of the store it is in', async () => {
    const now = () => Date.UTC(2026, 0, 1, 12, 1, 30);
    const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
    store.append(profileFromText('sh:10;main@n 40', { endMs: now(), spanMs: 180_000 }));
    const filter = { fromMs: 0, toMs: now() + 1, where: [] };
    expect((await store.parts(filter)).length).toBeGreaterThan(1);
    const { samples } = await readProfile(store, filter);
    expect(samples).toMatchObject([{ value: 40 }]);
  });

  it('exports what is seen in every format', async () => {
    const bytes = async (format: string): Promise<Uint8Array> =>
      new Uint8Array(
        await (await fetchPath(`/api/v1/export?format=${format}&where=process=sh`)).arrayBuffer(),
      );
    const text = async (format: string): Promise<string> => new TextDecoder().decode(await bytes(format));
    expect(await text('folded')).toBe('sh;main;fib;fib;vfs_write_[k] 6\n');
    expect(
      Pprof.decode(gunzipSync(await bytes('pprof'))).sample.map(({ value }) => Number(value[0])),
    ).toEqual([6]);
    const otlp = decodeOtlp(await bytes('otlp'));
    expect(otlp.profiles.flatMap(({ samples }) => samples).reduce((sum, { value }) => sum + value, 0)).toBe(
      6,
    );
    const speedscope = JSON.parse(await text('speedscope'));
    expect(speedscope.profiles).toMatchObject([{ unit: 'nanoseconds', name: expect.stringMatching(/^sh/) }]);
    // what is exported can be imported as it was
    const [read] = readProfiles('x.speedscope.json', await bytes('speedscope')).profiles;
    expect(read!.samples).toMatchObject([{ value: 6 }]);
  });

  it.each([
    ['top?where=colour%3Dred', '"colour" is not a key: use one of process, host'],
    ['top?where=process', `"process" can't be read: write KEY=VALUE`],
    ['top?where=process~%5B', 'is not a regular expression'],
    ['top?limit=0', 'limit is "0": write a whole number from 1 to 10000'],
    ['top?from=yesterday', 'from is "yesterday": write now, -5m'],
    ['top?range=1y', 'range is "1y": write a time such as 60s'],
    ['tree?from=now&to=-5m', 'must be before'],
    ['callers', 'function is missing'],
    ['source', 'file is missing'],
    ['export?format=gif', 'format is "gif": use one of pprof, folded, speedscope, otlp'],
  ])('refuses %s with a sentence', async (path, sentence) => {
    const response = await fetchPath(`/api/v1/${path}`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toContain(sentence);
  });

  it('answers files as its OpenAPI document says', async () => {
    const { paths } = await get('openapi.json');
    const ajv = new Ajv2020({ allErrors: true, strict: false });
    const object = join(folder, 'names.o');
    writeFileSync(`${object}.c`, 'int answer(void) { return 42; }');
    execFileSync('gcc', ['-g', '-c', '-o', object, `${object}.c`]);
    for (const [path, body] of [
      ['import?name=a.folded&at=-50m', Buffer.from('posted;main 3')],
      ['symbols?name=names.o', readFileSync(object)],
    ] as const) {
      const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/${path}`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/octet-stream' },
      });
      const { post } = paths[`/api/v1/${path.split('?')[0]}`];
      expect(post.requestBody.content).toHaveProperty('application/octet-stream');
      const { schema } = post.responses[200].content['application/json'];
      const answer = await response.json();
      expect(ajv.validate(schema, answer), `${path}: ${JSON.stringify(answer)} ${ajv.errorsText()}`).toBe(
        true,
      );
    }
  });
});

interface Columns {
  strings: string[];
  frames: { name: number[] };
  nodes: { parent: number[]; frame: number[]; self: number[] };
}

function linesOf({ strings, frames, nodes }: Columns): string[] {
  const paths: string[] = [];
  const lines: string[] = [];
  for (const [node, parent] of nodes.parent.entries()) {
    const name = strings[frames.name[nodes.frame[node]!]!]!;
    paths[node] = node === 0 ? '' : paths[parent] === '' ? name : `${paths[parent]};${name}`;
    if (nodes.self[node]! > 0) lines.push(`${paths[node]} ${nodes.self[node]}`);
  }
  return lines.sort();
}
