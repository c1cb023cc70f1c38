import { expect, it } from 'vitest';
import { buildGoPclntab } from '../../../common/elf/build-go-pclntab.ts';
import { GoPclntab } from '../../../common/elf/go-pclntab.ts';
import { readGoFrames } from '../sources/go-frames.ts';
import { flattenFunctions } from './flatten-functions.ts';
import { FunctionRows } from './rows.ts';
import { RuleTable } from './rules.ts';
import { TableTooLarge } from './table-limits.ts';

it('refuses a file of which many functions share one long list of rows', () => {
  const [steps, count] = [60_000, 600];
  const sizes = Array.from({ length: steps }, (_, i) => [i, (i % 2) * 8] as const);
  const functions = Array.from({ length: count }, (_, i) => {
    return { name: 'f', start: i * steps, sizes: i === 0 ? sizes : [] };
  });
  const bytes = buildGoPclntab({
    form: '1.20',
    textStart: 0,
    saysTextStart: 1,
    end: count * steps,
    functions,
  });
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const records = Number(view.getBigUint64(64, true)) + (count + 1) * 8;
  for (let i = 1; i < count; i++)
    view.setUint32(records + i * 48 + 16, view.getUint32(records + 16, true), true);
  const table = new GoPclntab(bytes, () => undefined);
  const rows = new FunctionRows();
  const add = () =>
    readGoFrames(table, 'x86_64', () => undefined).addRows(rows, new RuleTable(), () => false);
  expect(add).toThrow(TableTooLarge);
});

it('keeps rows of any address, and as many more as were expected, but none 4 GiB behind their function', () => {
  const rows = new FunctionRows();
  const start = 2 ** 47;
  rows.beginFunction(start, start + 2 ** 33);
  rows.addRow(start, 1);
  rows.reserve(10, 100_000);
  rows.addRow(start + 2 ** 32 - 1, 2);
  rows.addRow(start + 2 ** 32, 3);
  rows.endFunction();
  rows.beginFunction(16, 32);
  rows.addRow(20, 4);
  rows.endFunction();
  const { addresses, ruleIds } = flattenFunctions(rows);
  expect([...addresses]).toEqual([16, 32, start, start + 2 ** 32 - 1, start + 2 ** 33]);
  expect([...ruleIds]).toEqual([4, 0, 1, 2, 0]);
});
