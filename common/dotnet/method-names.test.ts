import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MalformedMetadata, Metadata, type ReadAt, Table } from './metadata.ts';
import { methodName, writtenPath } from './method-names.ts';

const ASSEMBLY = readFileSync(join(import.meta.dirname, '../../test/runtimes/dotnet/chain.dll'));
const ROOT = ASSEMBLY.indexOf('BSJB');

/** As a process's memory is read: what is not there is no RangeError. */
const readerOf =
  (bytes: Uint8Array): ReadAt =>
  (at, length) => {
    if (at < 0 || at + length > bytes.length) throw new MalformedMetadata('outside');
    return new DataView(bytes.buffer, bytes.byteOffset + at, length);
  };

const namesOf = (metadata: Metadata): string[] =>
  Array.from({ length: metadata.rows(Table.methodDef) }, (_, i) => methodName(metadata, i + 1));

describe('names of methods', () => {
  it.each([
    ['Cart.Add', ['Cart', 'Add']],
    ['Shop.Load', ['Shop', '<Load>d__3', 'MoveNext']],
    ['Shop.Load', ['Shop', '<Load>d__3<T>', 'MoveNext']],
    ['Shop.Load.lambda', ['Shop', '<>c', '<<Load>b__1_0>d', 'MoveNext']],
    ['Shop.Load.Inner', ['Shop', '<<Load>g__Inner|1_0>d', 'MoveNext']],
    ['Shop.Sum.lambda', ['Shop', '<>c', '<Sum>b__1_0']],
    ['Shop.Sum.lambda', ['Shop', '<>c__DisplayClass2_0', '<Sum>b__0']],
    ['Shop.Sum.Add', ['Shop', '<Sum>g__Add|1_0']],
    ['Program.Main', ['Program', '<Main>$']],
    ['Program.Main.lambda', ['Program', '<>c', '<<Main>$>b__0_0']],
    ['Program.Main', ['Program', '<<Main>$>d__0', 'MoveNext']],
    ['List<T>.Enumerator.MoveNext', ['List<T>', 'Enumerator', 'MoveNext']],
    ['Shop..ctor', ['Shop', '.ctor']],
    ['<Odd.Add', ['<Odd', 'Add']],
  ])('%s', (name, path) => {
    expect(writtenPath(path).join('.')).toBe(name);
  });

  it('come out of an assembly', () => {
    const names = namesOf(new Metadata(readerOf(ASSEMBLY.subarray(ROOT))));
    for (const name of [
      'Known.Work.Thin',
      'Known.Box<T>.Lid<U>.Lift',
      'Known.Program.Nested',
      'Known.Program.Numbers',
      'Known.Program.Local.Inner',
      'Known.Program.Precompiled.lambda',
      'StartupHook.Initialize',
    ])
      expect(names).toContain(name);
  });

  it('end with an error of its own where bytes are others', () => {
    let failures = 0;
    for (let i = 0; i < 4000; i++) {
      const bytes = Uint8Array.from(ASSEMBLY.subarray(ROOT, ROOT + 6000));
      bytes[(i * 7) % 1200] = (i * 31) & 0xff;
      if (i % 5 === 0) bytes.fill(0xff, i % 900, (i % 900) + 4);
      try {
        namesOf(new Metadata(readerOf(bytes)));
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedMetadata);
        failures++;
      }
    }
    expect(failures).toBeGreaterThan(100);
  });
});
