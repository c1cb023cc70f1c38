import { describe, expect, it } from 'vitest';
import { valueFormatter } from './value-format.ts';

const format = (type: string, unit: string) => valueFormatter({ type, unit });

describe('valueFormatter', () => {
  it('counts by the name of the type', () => {
    const samples = format('samples', 'count');
    expect([0, 1, 12_034].map(samples.amount)).toEqual(['0 samples', '1 sample', '12,034 samples']);
    expect(samples.cell(12_034)).toBe('12,034');
    expect(samples.column).toBe('samples');
    expect(format('alloc_objects', 'count').of(3248)).toBe('3,248 alloc_objects');
    expect(format('goroutine', 'count').amount(7)).toBe('7 goroutines');
    expect(format('events', 'count').perSecond(0.25)).toBe('0.25/s');
  });

  it('has no control characters of a type or unit that a stranger named', () => {
    const hostile = format('a\x1b]0;b\x07', '\x1b[31mc');
    expect([hostile.of(1), hostile.column]).toEqual(['1 ?[31mc of a?]0;b?', 'a?]0;b?']);
  });

  it('counts the events of a probe, and adds up the values of one that has them', () => {
    const events = format('uprobe:libc:malloc', 'count');
    expect([events.column, events.amount(1), events.of(1549)]).toEqual([
      ...['events', '1 event', '1,549 events of uprobe:libc:malloc'],
    ]);
    const probe = 'uprobe:./shop:main.(*order).add,value=arg3';
    const values = format(probe, 'count');
    expect([values.column, values.amount(1549), values.of(1549)]).toEqual([
      ...['value', '1,549', `1,549 of ${probe}`],
    ]);
    expect(values.perSecond(20)).toBe('20/s');
    const bytes = format('tracepoint:kmem:kmalloc,value=bytes_alloc,unit=bytes', 'bytes');
    expect(bytes.amount(1024)).toBe('1 KiB');
  });

  it.each([
    [350, '350 ns'],
    [1500, '1.5 µs'],
    [999_499, '999 µs'],
    [999_600, '1 ms'],
    [12_300_000, '12.3 ms'],
    [999_700_000, '1 s'],
    [7_050_000_000, '7.05 s'],
    [65e9, '1 min 5 s'],
    [3600e9, '1 h'],
    [90_000e9, '1 d 1 h'],
    [-7_050_000_000, '-7.05 s'],
  ])('writes %d nanoseconds as %s', (value, text) => {
    const formatter = format('off_cpu', 'nanoseconds');
    expect(formatter.amount(value)).toBe(text);
    expect(formatter.of(value)).toBe(`${text} of waiting`);
  });

  it.each([
    [0, '0 bytes'],
    [1, '1 byte'],
    [1023, '1,023 bytes'],
    [1024, '1 KiB'],
    [2 ** 20 - 1, '1 MiB'],
    [90 * 2 ** 20 + 2 ** 19, '90.5 MiB'],
    [327 * 2 ** 20, '327 MiB'],
    [2 ** 63, '8192 PiB'],
  ])('writes %d bytes as %s', (value, text) =>
    expect(format('alloc_space', 'bytes').amount(value)).toBe(text),
  );

  it('takes any other unit as it comes', () => {
    const joules = format('energy', 'joules');
    expect(joules.amount(1234)).toBe('1,234 joules');
    expect(joules.of(0.5)).toBe('0.5 joules of energy');
    expect(format('wall', 'milliseconds').amount(1500)).toBe('1.5 s');
    expect(format('', '').amount(2)).toBe('2 values');
    expect(format('__proto__', 'constructor').amount(2)).toBe('2 constructor');
  });
});
