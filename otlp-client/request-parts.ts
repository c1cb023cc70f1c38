/**
 * Takes an encoded ExportProfilesServiceRequest apart, for the rare moments when a receiver refuses its size or
 * a part of it. Requests wait as bytes, not as profiles, because profiles in memory are several times as large.
 */
import { opentelemetry } from '#otlp';
import { eachField } from './message-fields.ts';

const Request = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;
type Dictionary = opentelemetry.proto.profiles.v1development.IProfilesDictionary;
type IProfile = opentelemetry.proto.profiles.v1development.IProfile;
type ISample = opentelemetry.proto.profiles.v1development.ISample;
type IResourceProfiles = opentelemetry.proto.profiles.v1development.IResourceProfiles;

export interface RequestPart {
  bytes: Uint8Array;
  /** Sampling events in it. */
  samples: number;
}

/** Which table an index field points into; every field whose name ends in `Strindex` points into the strings. */
const TABLE_OF: Readonly<Record<string, keyof Dictionary>> = {
  stackIndex: 'stackTable',
  linkIndex: 'linkTable',
  attributeIndices: 'attributeTable',
  locationIndices: 'locationTable',
  mappingIndex: 'mappingTable',
  functionIndex: 'functionTable',
};

const NOWHERE = -1;

const tableOf = (field: string): keyof Dictionary | undefined =>
  field.endsWith('Strindex') ? 'stringTable' : TABLE_OF[field];

const isMessage = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array) && !('unsigned' in value);

/** A dictionary of those entries of another that are referred to; entry 0 of each table comes along. */
class SmallerDictionary {
  readonly #from: Dictionary;
  readonly #tables = new Map<keyof Dictionary, { entries: unknown[]; newIndex: Map<number, number> }>();

  constructor(from: Dictionary) {
    this.#from = from;
    for (const name of new Set([...Object.values(TABLE_OF), 'stringTable' as const])) {
      this.#tables.set(name, {
        entries: (from[name] ?? []).slice(0, 1),
        newIndex: new Map([[0, 0]]),
      });
    }
  }

  /** A copy of a message in which every index points into this dictionary. */
  adopt<T extends object>(message: T): T {
    const copy: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(message)) {
      const table = tableOf(field);
      if (table === undefined) copy[field] = this.#adoptValue(value);
      else if (Array.isArray(value)) copy[field] = value.map((index: number) => this.#keep(table, index));
      else copy[field] = this.#keep(table, value as number);
    }
    return copy as T;
  }

  get tables(): Dictionary {
    return Object.fromEntries([...this.#tables].map(([name, { entries }]) => [name, entries]));
  }

  #adoptValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#adoptValue(each));
    return isMessage(value) ? this.adopt(value) : value;
  }

  #keep(name: keyof Dictionary, index: number): number {
    const table = this.#tables.get(name)!;
    const known = table.newIndex.get(index);
    if (known !== undefined) return known;
    const from = this.#from[name];
    // Points nowhere, and still does in the copy: its receiver says what that costs.
    if (!(index >= 0 && index < (from?.length ?? 0))) return NOWHERE;
    const kept = table.entries.length;
    table.newIndex.set(index, kept);
    table.entries.push(undefined);
    table.entries[kept] = this.#adoptValue(from![index]);
    return kept;
  }
}

function countEvents(sample: ISample): number {
  const timestamps = sample.timestampsUnixNano?.length ?? 0;
  if (timestamps > 0) return timestamps;
  return (sample.values ?? []).reduce((sum, value) => sum + Number(value), 0);
}

const profilesOf = (resources: readonly IResourceProfiles[]): IProfile[] =>
  resources.flatMap((resource) => (resource.scopeProfiles ?? []).flatMap((scope) => scope.profiles ?? []));

/** The sample entries `from` to `to`, counted over the whole request, with only what they refer to. */
function takeSamples(
  request: opentelemetry.proto.collector.profiles.v1development.IExportProfilesServiceRequest,
  from: number,
  to: number,
): RequestPart {
  const dictionary = new SmallerDictionary(request.dictionary ?? {});
  let at = 0;
  let events = 0;
  const takeProfile = (profile: IProfile): IProfile[] => {
    const all = profile.samples ?? [];
    const samples = all.slice(Math.max(0, from - at), Math.max(0, to - at));
    at += all.length;
    for (const sample of samples) events += countEvents(sample);
    return samples.length === 0 ? [] : [dictionary.adopt({ ...profile, samples })];
  };
  const resourceProfiles: IResourceProfiles[] = [];
  for (const resource of request.resourceProfiles ?? []) {
    const scopeProfiles = (resource.scopeProfiles ?? [])
      .map((scope) => ({ scope, profiles: (scope.profiles ?? []).flatMap(takeProfile) }))
      .filter(({ profiles }) => profiles.length > 0)
      .map(({ scope, profiles }) => ({ ...dictionary.adopt({ ...scope, profiles: [] }), profiles }));
    if (scopeProfiles.length === 0) continue;
    const rest = dictionary.adopt({ ...resource, scopeProfiles: [] });
    resourceProfiles.push({ ...rest, scopeProfiles });
  }
  const bytes = Request.encode({ resourceProfiles, dictionary: dictionary.tables }).finish();
  return { bytes, samples: events };
}

/**
 * Two requests with half of the sample entries each; undefined where there is only one entry, or none, and for one that can't
 * be decoded: a collector passes on what others sent, whose texts may be no UTF-8.
 */
export function splitRequest(bytes: Uint8Array): [RequestPart, RequestPart] | undefined {
  const request = decode(bytes);
  if (!request) return undefined;
  const entries = profilesOf(request.resourceProfiles).reduce((n, p) => n + (p.samples?.length ?? 0), 0);
  if (entries < 2) return undefined;
  const middle = entries >> 1;
  return [takeSamples(request, 0, middle), takeSamples(request, middle, entries)];
}

function decode(bytes: Uint8Array): ReturnType<typeof Request.decode> | undefined {
  try {
    return Request.decode(bytes);
  } catch {
    return undefined;
  }
}

/** resource_profiles, scope_profiles, profiles */
const PROFILE_PATH = [1, 2, 2];

/** How many profiles a request carries: OTLP's partial success counts in them. 0 for one that can't be read. */
export function countProfiles(bytes: Uint8Array): number {
  try {
    return countBelow(bytes, PROFILE_PATH);
  } catch {
    return 0;
  }
}

function countBelow(bytes: Uint8Array, [field, ...rest]: readonly number[]): number {
  if (field === undefined) return 1;
  let count = 0;
  eachField(bytes, (id, value) => {
    if (id === field && typeof value !== 'number') count += countBelow(value, rest);
  });
  return count;
}
