import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KallsymsReader } from './kallsyms.ts';
import { parseModules } from './kernel-images.ts';
import { buildKernelSymbols, parseKallsyms } from './kernel-symbols.ts';

const text = `0000000000000000 A __per_cpu_start
0000000000001000 A cpu_tss_rw
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000000 t local_first
ffffffff81000040 T __pfx_do_one
ffffffff81000050 T do_one
ffffffff81000100 T __sched_text_start
ffffffff81000100 t schedule_local
ffffffff81000200 W weak_alias
ffffffff81000200 t local_alias
ffffffff81000200 T __global_alias
ffffffff81000300 T _etext
ffffffff82000000 D some_data
ffffffff83000000 t init_function
ffffffffc0002100 t ext4_b\t[ext4]
ffffffffc0002040 T ext4_a\t[ext4]
ffffffffc0002080 d ext4_data\t[ext4]
ffffffffc0900000 t bpf_prog_6deef7357e7b4530_sd_fw_ingress\t[bpf]
ffffffffc0901000 t bpf_prog_aaaaaaaaaaaaaaaa_other\t[bpf]
`;
const modules = parseModules(
  'ext4 4096 1 - Live 0xffffffffc0002000\njbd2 4096 1 ext4, Live 0x0000000000000000\n',
);

describe('look-ups', () => {
  const symbols = parseKallsyms(text, modules);
  const name = (address: bigint) => symbols.lookup(address)?.name;

  test('a symbol ends where the next begins', () => {
    expect(symbols.lookup(0xffffffff81000050n)).toEqual({ name: 'do_one', module: '', offset: 0x50 });
    expect(symbols.lookup(0xffffffff810000ffn)).toEqual({ name: 'do_one', module: '', offset: 0xff });
  });

  test('section markers name nothing, whatever their binding', () => {
    expect(name(0xffffffff81000000n)).toBe('local_first');
    expect(name(0xffffffff81000100n)).toBe('schedule_local');
  });

  test('padding keeps its own name', () => {
    expect(name(0xffffffff8100004fn)).toBe('__pfx_do_one');
  });

  test('of aliases the exported one without underscores wins', () => {
    expect(name(0xffffffff81000250n)).toBe('weak_alias');
  });

  test('data, freed initialisation code and addresses outside are nothing', () => {
    expect(symbols.lookup(0xffffffff80ffffffn)).toBeUndefined();
    expect(symbols.lookup(0xffffffff81000300n)).toBeUndefined();
    expect(symbols.lookup(0xffffffff82000000n)).toBeUndefined();
    expect(symbols.lookup(0xffffffff83000010n)).toBeUndefined();
    expect(symbols.lookup(0x401000n)).toBeUndefined();
    expect(symbols.lookup(0n)).toBeUndefined();
  });

  test("a module's last symbol names its page, not the module's data or what came there since", () => {
    const large = parseModules('ext4 65536 1 - Live 0xffffffffc0002000\n');
    const at = (address: bigint) => parseKallsyms(text, large).lookup(address);
    expect(at(0xffffffffc0002fffn)).toEqual({ name: 'ext4_b', module: 'ext4', offset: 0xfff });
    expect(at(0xffffffffc0003000n)).toEqual({ name: '', module: 'ext4', offset: 0x1000 });
  });

  test('modules have their own images, in any order of symbols', () => {
    expect(symbols.lookup(0xffffffffc00020f0n)).toEqual({ name: 'ext4_a', module: 'ext4', offset: 0xf0 });
    expect(symbols.lookup(0xffffffffc0002fffn)).toEqual({ name: 'ext4_b', module: 'ext4', offset: 0xfff });
    expect(symbols.lookup(0xffffffffc0003000n)).toBeUndefined();
    expect(symbols.lookup(0xffffffffc0002010n)).toEqual({ name: '', module: 'ext4', offset: 0x10 });
  });

  test('offsets of BPF programs count from the program, the last of which has a bounded size', () => {
    const found = { name: 'bpf_prog_6deef7357e7b4530_sd_fw_ingress', module: 'bpf', offset: 0xfff };
    expect(symbols.lookup(0xffffffffc0900fffn)).toEqual(found);
    expect(name(0xffffffffc0901fffn)).toBe('bpf_prog_aaaaaaaaaaaaaaaa_other');
    expect(symbols.lookup(0xffffffffc0b01000n)).toBeUndefined();
  });
});

test('hidden addresses are told, with the fix', () => {
  const symbols = parseKallsyms('0000000000000000 T _stext\n0000000000000000 t f\t[m]\n');
  expect(symbols.hidden).toBe(true);
  expect(symbols.hiddenReason).toContain('kptr_restrict');
  expect(symbols.lookup(0xffffffff81000000n)).toBeUndefined();
  expect(parseKallsyms(text).hidden).toBe(false);
});

test('bad lines are skipped and counted, good ones around them kept', () => {
  const long = `ffffffff81000060 t ${'x'.repeat(2000)}`;
  const symbols = parseKallsyms(
    `ffffffff81000000 T a\nnonsense\nffffffff8100zzzz T b\nffffffff81000010 T\n${long}\nffffffff81000020 T c\n`,
  );
  expect(symbols.skippedLines).toBe(4);
  expect(symbols.lookup(0xffffffff81000010n)?.name).toBe('a');
  expect(symbols.lookup(0xffffffff81000020n)?.name).toBe('c');
});

test('where the text is cut makes no difference', () => {
  const bytes = new TextEncoder().encode(text);
  const addresses = [0xffffffff81000050n, 0xffffffff81000230n, 0xffffffffc0002100n, 0xffffffffc0900000n];
  const whole = parseKallsyms(bytes, modules);
  fc.assert(
    fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 }), (cuts) => {
      const reader = new KallsymsReader();
      const ends = [...cuts.sort((a, b) => a - b), bytes.length];
      let at = 0;
      for (const end of ends) {
        reader.push(bytes.subarray(at, end));
        at = end;
      }
      const steps = buildKernelSymbols(reader.finish(), modules);
      let step = steps.next();
      while (!step.done) step = steps.next();
      const pieces = step.value;
      expect(pieces.skippedLines).toBe(0);
      for (const address of addresses) expect(pieces.lookup(address)).toEqual(whole.lookup(address));
    }),
  );
});

test('any bytes are survived', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 3000 }),
      fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
      (bytes, address) => {
        const symbols = parseKallsyms(bytes);
        expect(symbols.lookup(address)?.name ?? '').toEqual(expect.any(String));
      },
    ),
  );
});

test('random tables: each address is named by the last symbol at or before it', () => {
  const entries = fc.uniqueArray(fc.nat({ max: 0xffff }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(entries, fc.nat({ max: 0x10fff }), (offsets, probe) => {
      const base = 0xffffffff81000000n;
      const lines = offsets.map((offset) => `${(base + BigInt(offset)).toString(16)} t f${offset}`);
      const symbols = parseKallsyms(lines.join('\n'));
      const below = offsets.filter((offset) => offset <= probe);
      const last = Math.max(...offsets);
      const limit = (Math.floor(last / 4096) + 1) * 4096;
      const expected = below.length > 0 && probe < limit ? `f${Math.max(...below)}` : undefined;
      expect(symbols.lookup(base + BigInt(probe))?.name).toBe(expected);
    }),
  );
});

const real = readFileSync('/proc/kallsyms', 'latin1');
test.skipIf(!/^f[0-9a-f]{15} [tT] /m.test(real))('every function of this kernel finds itself', () => {
  const lines = real.split('\n').filter((line) => line !== '' && !line.includes('\t'));
  const parsed = lines.map(
    (line) => [BigInt(`0x${line.split(' ')[0]}`), ...line.split(' ').slice(1)] as const,
  );
  const start = parsed.find(([, , symbol]) => symbol === '_stext')![0];
  const end = parsed.find(([, , symbol]) => symbol === '_etext')![0];
  const names = new Map<bigint, Set<string>>();
  for (const [address, type, symbol] of parsed) {
    if (!'tTwW'.includes(type!) || address < start || address >= end) continue;
    names.set(address, (names.get(address) ?? new Set()).add(symbol!));
  }
  const symbols = parseKallsyms(real);
  expect(symbols.skippedLines).toBe(0);
  expect(names.size).toBeGreaterThan(1000);
  const wrong = [...names].filter(
    ([address, candidates]) => !candidates.has(symbols.lookup(address)?.name ?? ''),
  );
  expect(wrong).toEqual([]);
});
