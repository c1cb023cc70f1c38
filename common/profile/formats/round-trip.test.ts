/** What both ends of a round trip can hold is not lost: per format, all that it has room for, of any profile. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryProfile, describeSamples } from '../../../test/support/arbitrary-profile.ts';
import { attributesText } from '../model/attributes.ts';
import { frameNames, processName } from '../model/frame-name.ts';
import { linkKey } from '../model/link.ts';
import { emptyProcess, emptyProfile, type Location, type Profile, valueAt } from '../model/profile.ts';
import { readProfile, writeProfile } from './formats.ts';

type Describe = (profile: Profile, location: Location, index: number) => unknown;

/** Events by who was sampled and by the frames, root first; with their times where `timed`. */
function held(profile: Profile, frames: Describe, timed = false): Record<string, number> {
  const counts: Record<string, number> = {};
  const add = (key: unknown, count: number): void => {
    const text = JSON.stringify(key, (_key, value) => (typeof value === 'bigint' ? `${value}n` : value));
    counts[text] = (counts[text] ?? 0) + count;
  };
  for (const sample of profile.samples) {
    const stack = [...profile.stacks[sample.stack]!]
      .reverse()
      .flatMap((at) => frames(profile, profile.locations[at]!, at));
    const { pid } = profile.processes[sample.process]!;
    const who = [processName(profile, sample.process), pid, sample.tid, sample.threadName];
    if (!timed || sample.timestamps.length === 0) add([who, null, stack], sample.value);
    // a time at or before the profile's own beginning means "none"
    else
      for (const [event, time] of sample.timestamps.entries())
        add([who, time > profile.timeUnixNano ? time : null, stack], valueAt(sample, event));
  }
  return counts;
}

/** Events by the IDs that they are linked to. */
function linkedTo({ samples, links }: Profile): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { link = 0, value } of samples) {
    const key = linkKey(links[link]!);
    counts[key] = (counts[key] ?? 0) + value;
  }
  return counts;
}

/** Inlined calls as frames of their own, the outermost first. */
const callsOf: Describe = (profile, location, index) => {
  const named = location.lines.filter(({ func }) => profile.functions[func]!.name !== '');
  if (named.length === 0) return [[frameNames(profile, index)[0], location.frameType === 'kernel', '', 0, 0]];
  return named
    .map(({ func, line, column }) => {
      const { name, filename } = profile.functions[func]!;
      return [name, location.frameType === 'kernel', filename, line, column];
    })
    .reverse();
};

const placesOf: Describe = (profile, location, index) => {
  const { filename, gnuBuildId } = profile.mappings[location.mapping]!;
  const isMapped = filename !== '' || gnuBuildId !== '';
  const address = isMapped && location.address < 2n ** 53n ? location.address : 0n;
  return [[filename, gnuBuildId, location.frameType, address, callsOf(profile, location, index)]];
};

const pprofPlacesOf: Describe = (profile, { lines, mapping, address, functionStart = 0 }) => {
  const { filename, gnuBuildId, memoryStart, memoryLimit, fileOffset } = profile.mappings[mapping]!;
  // one that says nothing is none
  const functions = lines
    .filter(({ func }) => Object.values(profile.functions[func]!).some(Boolean))
    .map(({ func, line, column }) => {
      const { name, systemName, ...rest } = profile.functions[func]!;
      return { name, systemName: systemName || name, ...rest, line, column };
    });
  return [{ address, filename, gnuBuildId, memoryStart, memoryLimit, fileOffset, functions, functionStart }];
};

const small = (profile: Profile): Profile => ({
  ...profile,
  // weights are numbers of JSON: times of more than 104 days are not exact
  samples: profile.samples.map((sample) => ({ ...sample, value: Math.min(sample.value, 1000) })),
  // the text that would say "kernel"
  functions: profile.functions.map((one) => ({ ...one, name: one.name.replaceAll('_[k]', '') })),
});

const mapAll = <T>(table: readonly T[], change: (entry: T, index: number) => T): T[] =>
  table.map((entry, i) => (i === 0 ? entry : change(entry, i)));

const back = (file: string, profile: Profile): Profile => readProfile(file, writeProfile(file, profile));
const runs = { numRuns: 150 };

describe('a round trip keeps', () => {
  it('links in OTLP JSON as hex digits', () => {
    const link = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
    const sample = {
      stack: 0,
      process: 0,
      tid: 0,
      threadName: '',
      cpu: -1,
      value: 1,
      timestamps: [],
      link: 1,
    };
    const profile = { ...emptyProfile(), links: [...emptyProfile().links, link], samples: [sample] };
    const text = Buffer.from(writeProfile('a.otlp.json', profile)).toString();
    expect(JSON.parse(text).dictionary.linkTable).toEqual([{}, link]);
  });

  it('labels of pprof that are not IDs as attributes, and those of a link once', () => {
    const link = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: '' };
    const attributes = attributesText([
      ['trace_id', 'mine'],
      ['span_id', '7'],
    ]);
    const process = { ...emptyProcess(), pid: 7, attributes };
    const sample = { stack: 0, process: 1, tid: 0, threadName: '', cpu: -1, value: 1, timestamps: [] };
    const tables = { processes: [emptyProcess(), process], links: [...emptyProfile().links, link] };
    const samples = [sample, { ...sample, link: 1 }];
    const { samples: read, ...rest } = back('a.pb.gz', { ...emptyProfile(), ...tables, samples });
    const kept = read.map((one) => [
      rest.links[one.link ?? 0]!.traceId,
      rest.processes[one.process]!.attributes,
    ]);
    expect(kept).toEqual([
      ['', attributes],
      [link.traceId, attributesText([['span_id', '7']])],
    ]);
  });

  // in binary: otlp-encode.test.ts
  it('everything as JSON of OTLP that its binary form has', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        expect(describeSamples([back('a.otlp.json', profile)])).toEqual(
          describeSamples([back('a.otlp', profile)]),
        );
      }),
      runs,
    );
  });

  it('addresses, files, build IDs, inlined calls, types, threads and times for the Firefox Profiler', () => {
    fc.assert(
      fc.property(arbitraryProfile.map(small), (profile) => {
        expect(held(back('a.firefox.json', profile), placesOf, true)).toEqual(held(profile, placesOf, true));
      }),
      runs,
    );
  });

  it('calls, lines, threads and counts for speedscope and as a Chrome trace', () => {
    fc.assert(
      fc.property(arbitraryProfile.map(small), (profile) => {
        expect(held(back('a.speedscope.json', profile), callsOf)).toEqual(held(profile, callsOf));
        // a trace has no place for an empty stack
        const samples = profile.samples.filter(({ stack }) => profile.stacks[stack]!.length > 0);
        const traced = { ...profile, samples };
        expect(held(back('a.trace.json', traced), callsOf)).toEqual(held(traced, callsOf));
      }),
      runs,
    );
  });

  it('functions, lines, addresses, mappings, labels and links as pprof', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        const one: Profile = {
          ...profile,
          // the kernel is told by its mapping's name, and one build ID is all there is room for
          locations: profile.locations.map((entry) => ({ ...entry, frameType: 'native' as const })),
          mappings: mapAll(profile.mappings, (entry, i) => ({
            ...entry,
            filename: `/lib/${i}`,
            goBuildId: '',
          })),
        };
        expect(held(back('a.pb.gz', one), pprofPlacesOf)).toEqual(held(one, pprofPlacesOf));
        expect(linkedTo(back('a.pb.gz', one))).toEqual(linkedTo(one));
      }),
      runs,
    );
  });
});
