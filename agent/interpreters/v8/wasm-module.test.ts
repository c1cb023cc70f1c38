import fc from 'fast-check';
import { expect, it } from 'vitest';
import { functionName, HEADER, type ReadBinary, readWasmModule } from './wasm-module.ts';

const text = (string: string): number[] => [string.length, ...Buffer.from(string)];
const section = (id: number, ...bytes: number[]): number[] => [id, bytes.length, ...bytes];
const binary = (...sections: number[][]): Buffer => Buffer.from([...HEADER, ...sections.flat()]);

const reader =
  (bytes: Uint8Array): ReadBinary =>
  (at, length) =>
    bytes.subarray(at, at + length);

const namesOf = (bytes: Uint8Array): string[] | undefined => {
  const read = reader(bytes);
  const module = readWasmModule(read, bytes.length);
  return module && Array.from(module.namesAt, (_, index) => functionName(read, module, index));
};

const IMPORTS = section(
  2,
  ...[5, ...text('e'), ...text('t'), 1, 0x70, 1, 0, 9],
  ...[...text('e'), ...text('m'), 2, 0, 1],
  ...[...text('e'), ...text('g'), 3, 0x63, 0x70, 1],
  ...[...text('e'), ...text('x'), 4, 0, 0],
  ...[...text('e'), ...text('f'), 0, 0],
);
const FUNCTIONS = section(3, 3, 0, 0, 0);
const EXPORTS = section(7, 3, ...text('memory'), 2, 0, ...text('one'), 0, 1, ...text('two'), 0, 2);
const names = (...bytes: number[]): number[] => section(0, ...text('name'), ...bytes);
const FUNCTION_NAMES = section(1, 1, 2, ...text('zwei'));

it('names functions by the name section, else by their export, else by their index', () => {
  const bytes = binary(IMPORTS, FUNCTIONS, EXPORTS, names(...section(0, ...text('sums')), ...FUNCTION_NAMES));
  expect(namesOf(bytes)).toEqual(['wasm-function[0]', 'one', 'zwei', 'wasm-function[3]']);
});

it('leaves out names of functions that the module does not have, and what is not a module', () => {
  expect(namesOf(binary(FUNCTIONS, names(...section(1, 1, 7, ...text('seven')))))).toHaveLength(3);
  expect(namesOf(Buffer.from('\x7fELF\0\0\0\0\0'))).toBeUndefined();
});

it('keeps what stands in front of the end where that is missing', () => {
  const whole = binary(IMPORTS, FUNCTIONS, EXPORTS, names(...FUNCTION_NAMES));
  expect(namesOf(whole.subarray(0, -3))).toEqual(['wasm-function[0]', 'one', 'two', 'wasm-function[3]']);
});

const GIGABYTE = [128, 128, 128, 128, 4];

it('reads nothing of a section of a gigabyte, and cuts a name of one', () => {
  const long = Buffer.from([...GIGABYTE, ...Buffer.alloc(5000, 'x')]);
  const head = binary(FUNCTIONS, [0, ...GIGABYTE], text('name'), [1, ...GIGABYTE, 1, 1]);
  const asked: number[] = [];
  const read: ReadBinary = (at, length) => {
    asked.push(length);
    return Buffer.concat([head, long]).subarray(at, at + length);
  };
  const module = readWasmModule(read, 2 ** 30)!;
  expect(functionName(read, module, 1)).toBe('wasm-function[1]');
  module.namesAt[1] = head.length;
  expect(functionName(read, module, 1)).toBe('x'.repeat(1024));
  expect(Math.max(...asked)).toBeLessThan(1 << 20);
});

it('reads any bytes in bounded time', () => {
  const anything = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([HEADER, bytes]));
  fc.assert(fc.property(anything, (bytes) => namesOf(bytes) !== undefined));
  // counts of billions
  expect(namesOf(binary(section(3, 255, 255, 255, 255, 15)))).toHaveLength(1_000_000);
  expect(namesOf(binary(FUNCTIONS, section(7, 255, 255, 255, 255, 15, 0)))).toHaveLength(3);
});
