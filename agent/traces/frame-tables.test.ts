import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { emptyMapping } from '../../common/profile/model/profile.ts';
import type { Frame, FrameLine } from './frame.ts';
import { FrameTables } from './frame-tables.ts';

const line = (name: string, at = 1): FrameLine => ({
  function: name,
  systemName: '',
  file: 'a.c',
  line: at,
  column: 0,
});
const file = { ...emptyMapping(), filename: '/bin/a', fileId: 'aa' };
const frame = (fields: Partial<Frame>): Frame => ({
  mapping: file,
  address: 16,
  frameType: 'native',
  lines: [],
  isChanged: true,
  ...fields,
});
const namesAt = (tables: FrameTables, index: number): string[] =>
  tables.locations[index]!.lines.map(({ func }) => tables.functions[func]!.name);

test('a frame that learned its name has another location from then on, and keeps it', () => {
  const tables = new FrameTables();
  const shared = frame({ number: 3 });
  const before = tables.locationOf(shared);
  shared.lines = [line('inlined'), line('outer', 9)];
  shared.isChanged = true;
  const after = tables.locationOf(shared);
  expect([namesAt(tables, before), namesAt(tables, after)]).toEqual([[], ['inlined', 'outer']]);
  expect(tables.locationOf(shared)).toBe(after);
  expect(tables.locationOf(frame({ lines: [line('inlined'), line('outer', 9)] }))).toBe(after);
});

test('a frame whose file was opened meanwhile has the place in it', () => {
  const tables = new FrameTables();
  const late = frame({ number: 5000, mapping: { ...emptyMapping(), filename: '[file not open]' } });
  const before = tables.locationOf(late);
  late.mapping = file;
  late.address = 32;
  late.isChanged = true;
  const location = tables.locations[tables.locationOf(late)]!;
  expect(tables.locationOf(late)).not.toBe(before);
  expect([tables.mappings[location.mapping]!.fileId, location.address]).toEqual(['aa', 32n]);
});

test('copies of a file share a location; frames without a place share it where they say the same', () => {
  const tables = new FrameTables();
  const copy = { ...file };
  expect(tables.locationOf(frame({ mapping: copy }))).toBe(tables.locationOf(frame({})));
  const script = { mapping: emptyMapping(), address: 0, frameType: 'v8js' } as const;
  const [a, b, c] = ['f', 'f', 'g'].map((name) =>
    tables.locationOf(frame({ ...script, lines: [line(name)] })),
  );
  expect([a === b, a === c]).toEqual([true, false]);
});

test('frames without a place are told apart by each thing that they say', () => {
  const tables = new FrameTables();
  const script: Partial<Frame> = {
    mapping: emptyMapping(),
    address: 0,
    frameType: 'v8js',
    lines: [line('f')],
  };
  const fields: Partial<Frame>[] = [
    {},
    { frameType: 'jvm' },
    // the same in the 32 bits that are hashed
    { address: 2 ** 32 },
    { address: 2 ** 33 },
    { generated: 'a.js:1' },
    { lines: [line('f', 2)] },
    { lines: [{ ...line('f'), column: 1 }] },
    { lines: [{ ...line('f'), startLine: 1 }] },
    { lines: [{ ...line('f'), file: 'b.c' }] },
    { lines: [line('f'), line('f')] },
  ];
  const locate = (): number[] => fields.map((other) => tables.locationOf(frame({ ...script, ...other })));
  const first = locate();
  expect(new Set(first).size).toBe(fields.length);
  expect(locate()).toEqual(first);
});

test('frames and mappings that are made anew each time go, and their locations stay', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const tables = new FrameTables();
  const locations = new Set<number>();
  const meet = (): WeakRef<object>[] => {
    const made = frame({ mapping: { ...file } });
    locations.add(tables.locationOf(made));
    return [new WeakRef(made), new WeakRef(made.mapping)];
  };
  // The first one's mapping is the table's own.
  meet();
  const references = Array.from({ length: 100 }, meet).flat();
  // What a WeakRef refers to stays until the job that made it ends.
  await new Promise(setImmediate);
  collect();
  expect(references.filter((reference) => reference.deref() !== undefined)).toEqual([]);
  expect(locations.size).toBe(1);
});
