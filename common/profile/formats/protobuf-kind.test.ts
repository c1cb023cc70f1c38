import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { arbitraryProfile } from '../../../test/support/arbitrary-profile.ts';
import { cpuType } from '../model/profile-type.ts';
import { writeProfile } from './formats.ts';
import { protobufKind } from './protobuf-kind.ts';

it('knows pprof and OTLP by any of their beginnings', () => {
  fc.assert(
    fc.property(arbitraryProfile, fc.nat(), (profile, cut) => {
      const named = { ...profile, type: cpuType(7n) };
      for (const [kind, file] of [
        ['otlp', 'a.otlp'],
        ['pprof', 'a.pb'],
      ] as const) {
        const written = writeProfile(file, named);
        const bytes = file === 'a.pb' ? gunzipSync(written) : written;
        expect(protobufKind(bytes), kind).toBe(kind);
        expect(protobufKind(bytes.subarray(0, 3 + (cut % bytes.length))), `${kind}, cut`).toBe(kind);
      }
    }),
    { numRuns: 300 },
  );
});
