/**
 * What makes the same requests other ones, as a later stretch of time on the same machine would be: processes that came and
 * went are others, and most stacks differ in a frame near their leaf. How much is new is held to what a recording of an
 * hour had: see docs/store.md.
 */
import Long from 'long';
import type { opentelemetry } from '#otlp';

type Request = opentelemetry.proto.collector.profiles.v1development.IExportProfilesServiceRequest;
type Dictionary = opentelemetry.proto.profiles.v1development.IProfilesDictionary;

/** Of the stacks; the others are seen again. */
const SHARE_OF_NEW_STACKS = 0.6;
/** Of the locations that have a line. */
const SHARE_OF_NEW_LINES = 0.05;
/** Frames below the one that differs, on average. */
const MEAN_DEPTH = 6;
/** More than the PIDs of a recording lie apart. */
const PID_STEP = 100_000;

/** @param since the first PID that began during the recording */
export function varyRequest(request: Request, round: number, since: number): void {
  const { dictionary } = request;
  if (round === 0 || !dictionary) return;
  const random = randomNumbers(round);
  renumber(dictionary, round, since);
  const stacks = dictionary.stackTable ?? [];
  const original = stacks.map(({ locationIndices }) => locationIndices ?? []);
  for (const [index, stack] of stacks.entries()) {
    const locations = original[index]!;
    if (locations.length < 2 || random() > SHARE_OF_NEW_STACKS) continue;
    const at = Math.floor(-Math.log(1 - random()) * MEAN_DEPTH);
    const other = original[1 + Math.floor(random() * (original.length - 1))]!;
    if (at >= locations.length - 1 || at >= other.length) continue;
    stack.locationIndices = locations.with(at, other[at]!);
  }
  for (const { lines } of dictionary.locationTable ?? []) {
    const [line] = lines ?? [];
    if (line && Number(line.line) > 0 && random() < SHARE_OF_NEW_LINES)
      line.line = Long.fromNumber(Number(line.line) + round);
  }
}

/** Processes and threads of the recording become others of a later time. */
function renumber({ attributeTable, stringTable }: Dictionary, round: number, since: number): void {
  for (const attribute of attributeTable ?? []) {
    const key = stringTable?.[attribute.keyStrindex ?? 0];
    const id = Number(attribute.value?.intValue ?? 0);
    if ((key === 'process.pid' || key === 'thread.id') && id >= since)
      attribute.value = { intValue: Long.fromNumber(id + round * PID_STEP) };
  }
}

/** The lowest PID of a process that began after the time, in nanoseconds since the Unix epoch. */
export function firstPidSince(requests: readonly Request[], nanos: bigint): number {
  let least = Number.MAX_SAFE_INTEGER;
  const sinceMs = Number(nanos / 1_000_000n);
  for (const { dictionary, resourceProfiles } of requests) {
    const { attributeTable = [], stringTable = [] } = dictionary ?? {};
    const samples = (resourceProfiles ?? [])
      .flatMap(({ scopeProfiles }) => scopeProfiles ?? [])
      .flatMap(({ profiles }) => profiles ?? [])
      .flatMap((profile) => profile.samples ?? []);
    for (const { attributeIndices } of samples) {
      const attributes = (attributeIndices ?? []).map((index) => attributeTable?.[index]);
      const read = (key: string) =>
        attributes.find((attribute) => stringTable?.[attribute?.keyStrindex ?? 0] === key)?.value;
      const startedMs = Date.parse(read('process.creation.time')?.stringValue ?? '');
      if (startedMs >= sinceMs) least = Math.min(least, Number(read('process.pid')?.intValue));
    }
  }
  return least;
}

/** Between 0 and 1, the same with each run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed * 0x9e3779b1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
