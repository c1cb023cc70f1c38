import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { opentelemetry } from '#otlp';
import { countProfiles, splitRequest } from './request-parts.ts';

const Request = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

interface Shape {
  /** One list of sample entries a profile: [stack, events]. */
  profiles: [number, number][][];
}

const STRINGS = ['', 'main', 'work', 'a.so', 'process.pid', 'thread.name', 'samples', 'count', 'x', 'svc'];

/** Six stacks over three locations, two functions and a mapping; one attribute a sample. */
function makeRequest({ profiles }: Shape): Uint8Array {
  return Request.encode(
    Request.fromObject({
      dictionary: {
        stringTable: STRINGS,
        mappingTable: [{}, { filenameStrindex: 3, memoryLimit: 4096, attributeIndices: [3] }],
        functionTable: [{}, { nameStrindex: 1 }, { nameStrindex: 2, filenameStrindex: 3 }],
        locationTable: [
          {},
          { mappingIndex: 1, address: 16, lines: [{ functionIndex: 1, line: 7 }] },
          { mappingIndex: 1, address: 32, lines: [{ functionIndex: 2 }, { functionIndex: 1 }] },
          { address: 48 },
        ],
        stackTable: [
          {},
          ...[[1], [2], [2, 1], [3, 1], [3, 2, 1]].map((locationIndices) => ({ locationIndices })),
        ],
        linkTable: [{}],
        attributeTable: [
          {},
          { keyStrindex: 4, value: { intValue: 12 } },
          { keyStrindex: 5, value: { stringValueStrindex: 8 } },
          { keyStrindex: 5, value: { stringValue: 'plain' } },
        ],
      },
      resourceProfiles: profiles.map((samples, i) => ({
        resource: { attributes: [{ keyStrindex: 9, value: { intValue: i } }] },
        scopeProfiles: [
          {
            scope: { name: 'scope', attributes: [{ keyStrindex: 8, value: { boolValue: true } }] },
            profiles: [
              {
                sampleType: { typeStrindex: 6, unitStrindex: 7 },
                timeUnixNano: 1_000_000 + i,
                samples: samples.map(([stack, events], at) => ({
                  stackIndex: stack,
                  attributeIndices: [1 + (at % 3)],
                  timestampsUnixNano: Array.from({ length: events }, (_, n) => n + 1),
                })),
              },
            ],
          },
        ],
      })),
    }),
  ).finish();
}

// biome-ignore lint/suspicious/noExplicitAny: decoded messages are followed by field name
type Json = Record<string, any>;

/** Every sample in full, with all indices followed, in order; and what no sample refers to. */
function resolve(bytes: Uint8Array): { samples: string[]; orphans: number } {
  const request = Request.toObject(Request.decode(bytes), { longs: String, arrays: true }) as Json;
  const dictionary = request['dictionary'] as Json;
  const used = new Set<string>();
  const tables: Record<string, string> = {
    stackIndex: 'stackTable',
    mappingIndex: 'mappingTable',
    functionIndex: 'functionTable',
    locationIndices: 'locationTable',
    attributeIndices: 'attributeTable',
  };
  const follow = (value: unknown, field = ''): unknown => {
    const table = field.endsWith('Strindex') ? 'stringTable' : tables[field];
    if (Array.isArray(value)) return value.map((each) => follow(each, field));
    if (table !== undefined) {
      used.add(`${table} ${value as number}`);
      return follow(dictionary[table][value as number]);
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, follow(each, key)]));
  };
  const samples: string[] = [];
  for (const { resource, scopeProfiles } of request['resourceProfiles'] as Json[]) {
    for (const { scope, profiles } of scopeProfiles as Json[]) {
      for (const { samples: own, ...profile } of profiles as Json[]) {
        const context = [follow(resource), follow(scope), follow(profile)];
        for (const sample of own) samples.push(JSON.stringify([...context, follow(sample)]));
      }
    }
  }
  let entries = 0;
  for (const name of [...new Set(Object.values(tables)), 'stringTable'])
    entries += dictionary[name].length - 1;
  const referred = [...used].filter((key) => !key.endsWith(' 0')).length;
  return { samples, orphans: entries - referred };
}

const shape = fc.record({
  profiles: fc.array(fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 4 })), { maxLength: 5 }), {
    maxLength: 4,
  }),
});

describe('splitRequest', () => {
  it('halves keep every sample as it was, without orphans', () => {
    fc.assert(
      fc.property(shape, (made) => {
        const whole = makeRequest(made);
        const entries = made.profiles.flat();
        const halves = splitRequest(whole);
        if (entries.length < 2) {
          expect(halves).toBeUndefined();
          return;
        }
        const [a, b] = halves!.map((half) => resolve(half.bytes));
        expect([...a!.samples, ...b!.samples]).toEqual(resolve(whole).samples);
        expect(a!.samples.length).toBe(entries.length >> 1);
        expect([a!.orphans, b!.orphans]).toEqual([0, 0]);
        expect(halves![0].samples + halves![1].samples).toBe(
          entries.reduce((n, [, events]) => n + events, 0),
        );
      }),
    );
  });

  it('counts values where there are no timestamps', () => {
    const request = Request.encode(
      Request.fromObject({
        dictionary: {},
        resourceProfiles: [
          { scopeProfiles: [{ profiles: [{ samples: [{ values: [5] }, { values: [7] }] }] }] },
        ],
      }),
    ).finish();
    expect(splitRequest(request)!.map((half) => half.samples)).toEqual([5, 7]);
  });
});

describe('countProfiles', () => {
  it('counts over resources', () => {
    expect(countProfiles(makeRequest({ profiles: [[[1, 1]], [], [[2, 1]]] }))).toBe(3);
  });
});

it('takes what is not UTF-8 as it comes: counted, but not split', () => {
  const request = Buffer.from(
    makeRequest({
      profiles: [
        [
          [1, 2],
          [2, 1],
        ],
        [[3, 1]],
      ],
    }),
  );
  request[request.indexOf('main')] = 0xff;
  expect(splitRequest(request)).toBeUndefined();
  expect(countProfiles(request)).toBe(2);
  expect(countProfiles(Buffer.from([0xff]))).toBe(0);
});
