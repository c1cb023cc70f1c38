import { closeSync, openSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SectionSpec } from '../../../common/elf/build-elf.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { fdSource } from '../../files/fd-source.ts';
import { KERNEL_FRAME, type RecordSpec } from '../build-frames.ts';
import { CODE_AT, CODE_BYTES, deltasOf, type FrameSpec, ruleTextAt, textOf } from '../fixture.ts';
import { extractStackDeltas } from '../stack-deltas.ts';

const SIGRETURN = '48c7c00f0000000f05';
const MUSL_CLONE = '31ed5f41ffd189c7';
const GLIBC_CLONE3 = '0f054885c07c187401c3';

function codeWith(pieces: Readonly<Record<number, string>>): Uint8Array {
  const code = new Uint8Array(CODE_BYTES);
  for (const [at, hex] of Object.entries(pieces)) code.set(Buffer.from(hex, 'hex'), Number(at) - CODE_AT);
  return code;
}

describe('code that has no unwind information', () => {
  const program = (spec: FrameSpec): string[] => textOf(deltasOf({ entry: 0x1800, ...spec }));
  const ENTRY = ['0x1800 stop', '0x1840 invalid'];

  it('that a signal handler returns to is found in a static program', () => {
    expect(program({ code: codeWith({ 4353: SIGRETURN }) })).toEqual([
      '0x1100 signal',
      '0x110a invalid',
      ...ENTRY,
    ]);
  });

  it('that starts a thread of musl is a root', () => {
    expect(program({ code: codeWith({ 4353: MUSL_CLONE }) })).toEqual([
      '0x1101 stop',
      '0x1109 invalid',
      ...ENTRY,
    ]);
  });

  it('that makes a thread of glibc returns to whoever makes it', () => {
    expect(program({ code: codeWith({ 4353: GLIBC_CLONE3 }) })).toEqual([
      '0x1101 rsp+8 same cfa-8',
      '0x110b invalid',
      ...ENTRY,
    ]);
  });

  const libc = readFileSync('/proc/self/maps', 'utf8').match(/\S+\/libc\.so\.6$/m)?.[0];
  const clone3 = libc ? readFileSync(libc).indexOf(Buffer.from('b8b30100000f054885c07c', 'hex')) : -1;
  it.skipIf(clone3 < 0)('is found in the C library of this machine', () => {
    const fd = openSync(libc!, 'r');
    const elf = parseElf(fdSource(fd));
    const { vaddr, offset } = elf.segments.find((s) => clone3 >= s.offset && clone3 < s.offset + s.filesz)!;
    const syscall = clone3 - offset + vaddr + 5;
    const deltas = extractStackDeltas(elf);
    closeSync(fd);
    for (const at of [-1, 0, 2, 9]) expect(ruleTextAt(deltas, syscall + at)).toBe('rsp+8 same cfa-8');
  });

  it('is looked for in what nothing else describes where the program has an interpreter', () => {
    const deltas = deltasOf({
      entry: 0x1800,
      code: codeWith({ 4353: SIGRETURN }),
      elf: {
        segments: [
          { type: 1, flags: 5, offset: CODE_AT, filesz: CODE_BYTES },
          { type: 3, offset: CODE_AT, filesz: 16 },
        ],
      },
    });
    expect(ruleTextAt(deltas, 0x1101)).toBe('signal');
  });

  it('keeps the unwind information that it has', () => {
    const eh: RecordSpec[] = [KERNEL_FRAME, { start: 0x1100, size: 10 }, {}, { start: 0x1200, size: 0x40 }];
    const code = codeWith({ 4353: SIGRETURN, 4624: MUSL_CLONE });
    expect(program({ eh, code })).toEqual([
      '0x10ff signal',
      '0x110b invalid',
      '0x1200 rsp+8 same cfa-8',
      '0x1240 invalid',
      ...ENTRY,
    ]);
  });

  it('is found across the pieces in which the file is read', () => {
    const size = 0x20_0000;
    const code = new Uint8Array(size);
    const at = 0x10_0000 - 4;
    code.set(Buffer.from(SIGRETURN, 'hex'), at);
    const deltas = deltasOf({
      entry: CODE_AT,
      code,
      elf: { segments: [{ type: 1, flags: 5, offset: CODE_AT, filesz: size }] },
    });
    expect(ruleTextAt(deltas, CODE_AT + at - 1)).toBe('signal');
    expect(ruleTextAt(deltas, CODE_AT + at + 9)).toBe('invalid');
  });

  it('of arm64 is found by its own instructions', () => {
    const deltas = deltasOf({ machine: 183, entry: 0x1800, code: codeWith({ 4352: '681180d2010000d4' }) });
    // the start-up code of older C libraries has 20 instructions there
    const entry = ['0x1800 stop', '0x1850 invalid'];
    expect(textOf(deltas)).toEqual(['0x10ff signal', '0x1108 invalid', ...entry]);
  });
});

describe('the vDSO of arm64', () => {
  const code = codeWith({ 4352: '681180d2010000d4' });
  const named = (name: string): SectionSpec => ({
    name: '.dynstr',
    bytes: Uint8Array.from(Buffer.from(name)),
  });

  it('has the code that a signal handler returns to', () => {
    const deltas = deltasOf({ machine: 183, code, sections: [named('linux-vdso.so.1')] });
    expect(textOf(deltas)).toEqual(['0x10ff signal', '0x1108 invalid']);
  });
});

describe('the procedure linkage table of arm64', () => {
  const table = (code: string): SectionSpec => ({
    name: '.plt',
    addr: 0x1100,
    flags: 6,
    bytes: Uint8Array.from(Buffer.from(code, 'hex')),
  });
  // adrp x16; ldr x17, [x16]; add x16, x16, #0; br x17
  const entry = '10000090110240f91002009120021fd6';

  it('pushes two registers in its first entry', () => {
    const code = `f07bbfa9${entry}1f2003d51f2003d51f2003d5${entry}`;
    expect(textOf(deltasOf({ machine: 183, sections: [table(code)] }))).toEqual([
      '0x1100 sp+0 same x30',
      '0x1104 sp+16 same cfa-8',
      '0x1114 sp+0 same x30',
      '0x1130 invalid',
    ]);
  });

  it('does not push in a static program', () => {
    expect(textOf(deltasOf({ machine: 183, sections: [table(entry)] }))).toEqual([
      '0x1100 sp+0 same x30',
      '0x1110 invalid',
    ]);
  });

  it('is left as unwind information says, and is none on amd64', () => {
    const eh: RecordSpec[] = [
      { ra: 30, program: [0x0c, 31, 0] },
      { start: 0x1100, size: 0x10, program: [0x0e, 32] },
    ];
    expect(textOf(deltasOf({ machine: 183, eh, sections: [table(entry)] }))[0]).toBe('0x1100 sp+32 same x30');
    expect(textOf(deltasOf({ sections: [table(entry)] }))).toEqual([]);
  });
});

describe('_init and _fini', () => {
  const section = (name: string, hex: string): SectionSpec => ({
    name,
    addr: 0x1100,
    flags: 6,
    bytes: Uint8Array.from(Buffer.from(hex, 'hex')),
  });
  const deltas = (name: string, hex: string): string[] =>
    textOf(deltasOf({ code: codeWith({ 4352: hex }), sections: [section(name, hex)] }));

  it('are read instruction by instruction', () => {
    // endbr64; sub $8,%rsp; mov (%rip),%rax; test %rax,%rax; je; call *%rax; add $8,%rsp; ret
    const hex = 'f30f1efa4883ec08488b050d4f07004885c07402ffd04883c408c3';
    expect(deltas('.init', hex)).toEqual([
      '0x1100 rsp+8 same cfa-8',
      '0x1108 rsp+16 same cfa-8',
      '0x111a rsp+8 same cfa-8',
      '0x111b invalid',
    ]);
  });

  it('say nothing past what is not understood', () => {
    expect(deltas('.fini', '4883ec0806c3')).toEqual(['0x1100 rsp+8 same cfa-8', '0x1104 invalid']);
  });
});

describe('the entry point', () => {
  it('ends with the call that never returns', () => {
    // xor %rbp,%rbp; mov %rsp,%rdi; and $-16,%rsp; call
    const code = codeWith({ 4352: '4831ed4889e74883e4f0e80000001006' });
    expect(textOf(deltasOf({ entry: 0x1100, code }))).toEqual(['0x1100 stop', '0x110f invalid']);
  });

  it('leads to what it calls, and to main, whose address it loads', () => {
    // lea +0x40(%rip),%rdi; and $-16,%rsp; call +0x30
    const start = '488d3d400000004883e4f0e830000000';
    // push %rbp; pop %rbp; ret
    const code = codeWith({ 4352: start, 4416: '555dc3', 4423: '50900658c3' });
    const rows = textOf(deltasOf({ entry: 0x1100, code }));
    expect(rows).toContain('0x1141 rsp+16 cfa-16 cfa-8');
    expect(rows).toContain('0x1148 rsp+16 same cfa-8');
    expect(rows).toContain('0x1149 invalid');
  });

  it('on arm64 too', () => {
    // mov x29, #0; mov x0, sp; and sp, x0, #-16; b
    const code = codeWith({ 4352: '1d0080d2e00300911fec7c9201000014' });
    expect(textOf(deltasOf({ machine: 183, entry: 0x1100, code }))).toEqual([
      '0x1100 stop',
      // what it goes to, an instruction that nothing runs behind
      '0x1110 sp+0 same x30',
      '0x1114 invalid',
    ]);
  });

  it('ends where the next function begins', () => {
    const deltas = deltasOf({ entry: 0x1100, eh: [{}, { start: 0x1110, size: 16 }] });
    expect(textOf(deltas)).toEqual(['0x1100 stop', '0x1110 rsp+8 same cfa-8', '0x1120 invalid']);
  });

  it('ends with the code', () => {
    expect(textOf(deltasOf({ entry: 0x2ff0 }))).toEqual(['0x2ff0 stop', '0x3000 invalid']);
  });

  it('with unwind information is left as that says', () => {
    const eh: RecordSpec[] = [{}, { start: 0x1100, size: 0x20, program: [0x07, 16] }];
    expect(textOf(deltasOf({ entry: 0x1100, eh }))).toEqual(['0x1100 stop', '0x1120 invalid']);
    expect(textOf(deltasOf({ entry: 0x1110, eh: [{}, { start: 0x1100, size: 0x20 }] }))).toHaveLength(2);
  });

  it.each([0, 0x10, 0x5000])('that is not code is none: 0x%s', (entry) => {
    expect(textOf(deltasOf({ entry }))).toEqual([]);
  });
});
