import { describe, expect, it } from 'vitest';
import { decodeBoundThread, decodeCurrentThread } from './thread-access-arm64.ts';

const RUNTIME = 0x900000;
/** Instructions as objdump prints them, at 0x1000. */
const code = (words: string) => ({
  address: 0x1000,
  bytes: Buffer.from(words.replaceAll(' ', ''), 'hex').swap32(),
});
const bound = (words: string) => decodeBoundThread(code(words), RUNTIME);
const current = (words: string) => decodeCurrentThread(code(words), RUNTIME);

// What objdump prints of PyGILState_GetThisThreadState and _PyThreadState_UncheckedGet or _GetCurrent of real builds.
describe('the bound thread state on arm64', () => {
  it('of a program: ldr w0,[x0,#612]; b pthread_getspecific (Debian 3.11)', () => {
    expect(bound('b0002e20 91002000 f9412c01 b4000061 b9426400 17feba0e d2800000 d65f03c0')).toEqual({
      kind: 'key',
      address: 0x5c6000 + 8 + 612,
    });
  });

  it('of a program: add x0,x0,#0x6a0; b PyThread_tss_get (Debian 3.14)', () => {
    expect(bound('d503245f f0003920 b946a000 34000080 f0003920 911a8000 14023e06 d2800000')).toEqual({
      kind: 'key',
      address: 0x728000 + 0x6a4,
    });
  });

  it('of a library: ldr x0,[_PyRuntime@GOT]; add x0,x0,#0x260; b PyThread_tss_get (Debian 3.11)', () => {
    expect(bound('b0001bc0 f9466000 f9412c01 b4000061 91098000 140039c6 d2800000 d65f03c0')).toEqual({
      kind: 'key',
      address: RUNTIME + 0x264,
    });
  });

  it('of a library that calls twice: add x0,x19,#0x870; bl PyThread_tss_is_created (Debian 3.13)', () => {
    expect(bound('d503233f a9be7bfd 910003fd f9000bf3 d0001fb3 f9463a73 9121c260 94003981')).toEqual({
      kind: 'key',
      address: RUNTIME + 0x874,
    });
  });

  it('is not guessed', () => {
    expect(bound('d2800000 d65f03c0')).toBeUndefined();
    expect(bound('d503245f 17feba0e')).toBeUndefined();
    expect(decodeBoundThread({ address: 0, bytes: new Uint8Array(3) }, RUNTIME)).toBeUndefined();
  });
});

describe('the current thread state on arm64', () => {
  it('of a program: mrs x0,tpidr_el0; add x0,x0,#0,lsl #12; add x0,x0,#0x18; ldr x0,[x0] (Debian 3.13)', () => {
    expect(current('d503245f d53bd040 91400000 91006000 f9400000 d65f03c0')).toEqual({
      kind: 'offset',
      offset: 0x18,
    });
  });

  it('of a library: a descriptor, blr x2, ldr x0,[x1,x0] (Debian 3.13)', () => {
    expect(
      current(
        'd503233f d53bd041 a9bf7bfd 910003fd f0002020 f9405802 9102c000 d63f0040 f8606820 a8c17bfd d50323bf d65f03c0',
      ),
    ).toEqual({ kind: 'descriptor', got: 0x408000 + 0xb0, add: 0 });
  });

  it('of the whole process, in a program: ldr x0,[x0,#592]; ret', () => {
    expect(current('b0002e20 91002000 f9412800 d65f03c0')).toEqual({
      kind: 'global',
      address: 0x5c6000 + 8 + 592,
    });
  });

  it('of the whole process, in a library: ldr x0,[_PyRuntime@GOT]; ldr x0,[x0,#592]; ret', () => {
    expect(current('b0001bc0 f9466000 f9412800 d65f03c0')).toEqual({
      kind: 'global',
      address: RUNTIME + 592,
    });
  });

  it('is not guessed', () => {
    expect(current('d2800000 d65f03c0')).toBeUndefined();
    expect(current('d53bd040 d65f03c0')).toBeUndefined();
    expect(current('f9400000 d65f03c0')).toBeUndefined();
  });
});
