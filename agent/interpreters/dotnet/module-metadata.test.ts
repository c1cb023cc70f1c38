import { expect, it } from 'vitest';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { BASE, FakeClr } from './fake-clr.ts';
import { findMetadata } from './module-metadata.ts';

it('metadata that begins everywhere is none, and soon', () => {
  const clr = new FakeClr();
  clr.bytes.fill('BSJB');
  let reads = 0;
  const counted = {
    read(address: number, length: number) {
      reads++;
      return clr.read(address, length);
    },
  };
  expect(() => findMetadata(new RuntimeMemory(counted), BASE + clr.bytes.length - 16)).toThrow(CannotRead);
  expect(reads).toBeLessThan(1000);
});
