import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bufferSource, OutOfBounds } from '../base/byte-source.ts';
import { MalformedMetadata, Metadata, Table } from './metadata.ts';
import { methodName } from './method-names.ts';
import { readAssembly, readerOf } from './pe.ts';
import { PortablePdb } from './portable-pdb.ts';

const FOLDER = join(import.meta.dirname, '../../test/runtimes/dotnet');
const ASSEMBLY = readFileSync(join(FOLDER, 'chain.dll'));
const PDB = readFileSync(join(FOLDER, 'chain.pdb'));
const SOURCE = readFileSync(join(FOLDER, 'chain.cs'), 'utf8').split('\n');
const lineOf = (text: string): number => SOURCE.findIndex((line) => line.includes(text)) + 1;

const metadata = new Metadata(readerOf(bufferSource(ASSEMBLY.subarray(ASSEMBLY.indexOf('BSJB')))));
const rowOf = (name: string): number => {
  const rows = Array.from({ length: metadata.rows(Table.methodDef) }, (_, i) => i + 1);
  return rows.findLast((row) => methodName(metadata, row) === name)!;
};

describe('a portable PDB', () => {
  it('is the one that its assembly names', () => {
    const { pdb, moduleId, embedded } = readAssembly(bufferSource(ASSEMBLY));
    expect(new PortablePdb(PDB).id).toEqual(new Uint8Array(pdb!.id));
    expect(pdb!.path).toBe('/src/chain.pdb');
    expect(moduleId).toMatch(/^[0-9a-f]{32}$/);
    expect(embedded).toBeUndefined();
  });

  it.each([
    ['Known.Work.Spin', 0, 'int x = n;'],
    ['Known.Work.Spin', 10, 'x = x * 31 + i;'],
    ['Known.Work.Thin', 0, 'int Thin('],
    ['Known.Program.Plain', 12, 'sum += new Box<string>'],
  ])('has the line of %s + %d', (name, ilOffset, text) => {
    const place = new PortablePdb(PDB).find(rowOf(name), ilOffset);
    expect(place).toMatchObject({ file: '/src/chain.cs', line: lineOf(text) });
  });

  it('has none of what it says nothing of', () => {
    expect(new PortablePdb(PDB).find(100_000, 0)).toBeUndefined();
  });

  it('ends with an error of its own where bytes are others', () => {
    const results = { failed: 0, found: 0 };
    for (let i = 0; i < 2000; i++) {
      const bytes = Uint8Array.from(i % 2 ? PDB : ASSEMBLY);
      for (let k = 0; k < 4; k++)
        bytes[(i * 7919 + k * 1543) % (i % 3 ? 1024 : bytes.length)] = (i * 31 + k) & 0xff;
      if (i % 5 === 0) bytes.fill(0xff, i % 900, (i % 900) + 4);
      try {
        if (i % 2 === 0) readAssembly(bufferSource(bytes));
        else {
          const pdb = new PortablePdb(bytes);
          for (let row = 1; row < 60; row++) pdb.find(row, 100);
        }
        results.found++;
      } catch (error) {
        if (!(error instanceof MalformedMetadata)) expect(error).toBeInstanceOf(OutOfBounds);
        results.failed++;
      }
    }
    expect(results.failed).toBeGreaterThan(200);
    expect(results.found).toBeGreaterThan(200);
  });
});
