import { describe, expect, it } from 'vitest';
import { decodeBoundThread, decodeCurrentThread } from './thread-access.ts';

const RUNTIME = 0x900000;
/** Machine code as bytes in hex, at 0x1000. */
const code = (hex: string) => ({
  address: 0x1000,
  bytes: Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex')),
});
const bound = (hex: string) => decodeBoundThread(code(hex), RUNTIME);
const current = (hex: string) => decodeCurrentThread(code(hex), RUNTIME);

// What objdump prints of PyGILState_GetThisThreadState and _PyThreadState_GetCurrent of real builds.
describe('the bound thread state', () => {
  it('of a program: cmpq $0,…; je; mov key(%rip),%edi (Debian 3.11)', () => {
    expect(bound('48 83 3d 10 00 00 00 00 0f 84 00 01 00 00 8b 3d 50 3d 56 00 e9 00 00 00 00')).toEqual({
      kind: 'key',
      address: 0x1000 + 20 + 0x563d50,
    });
  });

  it('of a program: mov $Py_tss_t,%edi (Debian 3.14)', () => {
    expect(bound('f3 0f 1e fa 83 3d 3b 49 77 00 00 74 0a bf e0 10 ba 00 e9 7f 2e 11 00 31 c0 c3')).toEqual({
      kind: 'key',
      address: 0xba10e4,
    });
  });

  it('of a library: mov _PyRuntime@GOT,%rax; cmpq; lea 0x250(%rax),%rdi (3.11)', () => {
    expect(
      bound('48 8b 05 09 d8 1a 00 48 83 b8 48 02 00 00 00 74 0f 48 8d b8 50 02 00 00 e9 f3 3b e6 ff'),
    ).toEqual({ kind: 'key', address: RUNTIME + 0x250 + 4 });
  });

  it('of a library that keeps a register: lea 0x870(%rax),%rbx (3.13)', () => {
    expect(bound('48 8b 05 e9 6b 25 00 53 48 8d 98 70 08 00 00 48 89 df e8 d9 59 df ff')).toEqual({
      kind: 'key',
      address: RUNTIME + 0x870 + 4,
    });
  });

  it('in a thread-local variable: mov %fs:-40,%rax (3.15)', () => {
    expect(bound('f3 0f 1e fa 64 48 8b 04 25 d8 ff ff ff c3')).toEqual({ kind: 'offset', offset: -40 });
  });

  it('is not guessed', () => {
    expect(bound('31 c0 c3 90 90 90 90 90 90 90')).toBeUndefined();
    expect(bound('')).toBeUndefined();
  });
});

describe('the current thread state', () => {
  it('of a program: mov %fs:-24,%rax', () => {
    expect(current('f3 0f 1e fa 64 48 8b 04 25 e8 ff ff ff c3')).toEqual({ kind: 'offset', offset: -24 });
  });

  it('of a library: data16 lea …(%rip),%rdi; call __tls_get_addr; mov (%rax),%rax', () => {
    expect(
      current('48 83 ec 08 66 48 8d 3d d4 db 26 00 66 66 48 e8 b7 22 e3 ff 48 8b 00 48 83 c4 08 c3'),
    ).toEqual({ kind: 'module', got: 0x1000 + 12 + 0x26dbd4, add: 0 });
  });

  it('of a library with one block for all: mov 8(%rax),%rax', () => {
    expect(current('48 8d 3d 00 01 00 00 e8 00 00 00 00 48 8b 40 08 c3')).toEqual({
      kind: 'module',
      got: 0x1000 + 7 + 0x100,
      add: 8,
    });
  });

  it('of the whole process, in a library: mov _PyRuntime@GOT,%rax; mov 0x240(%rax),%rax (3.11)', () => {
    expect(current('48 8b 05 69 e2 1a 00 48 8b 80 40 02 00 00 c3')).toEqual({
      kind: 'global',
      address: RUNTIME + 0x240,
    });
  });

  it('of the whole process, in a library: mov _PyThreadState_Current@GOT,%rax; mov (%rax),%rax (3.6)', () => {
    expect(current('48 8b 05 19 34 10 00 48 8b 00 c3')).toEqual({ kind: 'global', address: RUNTIME });
  });

  it('of the whole process, in a program: mov …(%rip),%rax; ret (Debian 3.11)', () => {
    expect(current('48 8b 05 b9 e3 41 00 c3')).toEqual({ kind: 'global', address: 0x1000 + 7 + 0x41e3b9 });
  });

  it('of the whole process, in a program: lea _PyRuntime(%rip),%rax; mov 0x238(%rax),%rax (Ubuntu 3.10)', () => {
    expect(current('f3 0f 1e fa 48 8d 05 2b 8f 46 00 48 8b 80 38 02 00 00 c3')).toEqual({
      kind: 'global',
      address: 0x1000 + 11 + 0x468f2b + 0x238,
    });
  });

  it('is not guessed', () => {
    expect(current('31 c0 c3 90 90 90 90 90 90 90')).toBeUndefined();
    expect(current('')).toBeUndefined();
  });
});
