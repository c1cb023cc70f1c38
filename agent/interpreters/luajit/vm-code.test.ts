import { expect, test } from 'vitest';
import { readVmCode } from './vm-code.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex');
const PADDING = '90'.repeat(64);
/** Of Debian 12 and 11: what enters a trace, what enters the interpreter, and what says that it runs. */
const GC64 = {
  trace: '498b8ed8f4ffff 488b04c1 488b4058 488b6c2410 498996f8f1ffff',
  enter: '4c8b7510 4981c6800f0000',
  state: '41c78638f1ffffffffffff',
};
const GC32 = {
  trace: '418b8ee8f6ffff 8b0481 488b4040 8b6c2418 418996d4f4ffff',
  enter: '448b7508 4181c6280c0000',
  state: '41c786d0f3ffffffffffff',
};
const x86 = (parts: Partial<typeof GC64>) =>
  readVmCode('x86_64', bytes([parts.state, parts.trace, parts.enter].join(PADDING)));

test('offsets of a build with references of 64 and of 32 bits', () => {
  expect(x86(GC64)).toMatchObject({
    isGc64: true,
    traces: 0x458,
    jitBase: 0x178,
    vmState: 0xb8,
    traceCode: 0x58,
    frame: { bytes: 80, thread: 16 },
  });
  expect(x86(GC32)).toMatchObject({
    isGc64: false,
    traces: 0x310,
    jitBase: 0xfc,
    vmState: -8,
    traceCode: 0x40,
    frame: { thread: 24 },
  });
});

test('code that lacks one of them is not an interpreter', () => {
  const { trace, enter, state } = GC64;
  for (const parts of [{ trace, enter }, { trace, state }, { enter, state }, {}])
    expect(x86(parts)).toBeUndefined();
});

const arm64 = (instructions: number[]): Uint8Array => {
  const code = Buffer.alloc(instructions.length * 4 + 16);
  instructions.forEach((instruction, i) => {
    code.writeUInt32LE(instruction, 8 + i * 4);
  });
  return code;
};

test.each([
  ['Debian 12', [0xf94222c0, 0x52800001, 0xf87c781c, 0xb900bac1, 0xf9402f9b, 0xf900bed3, 0xf90072d7], 0x440],
  ['Debian 13', [0xf9422ac0, 0xb900badf, 0xf87c781c, 0xf9402f9b, 0xf900bed3, 0xf90072d7], 0x450],
])('offsets of %s for arm64', (_, instructions, traces) => {
  expect(readVmCode('aarch64', arm64(instructions))).toMatchObject({
    isGc64: true,
    traces,
    jitBase: 0x178,
    vmState: undefined,
    traceCode: 0x58,
    frame: { bytes: 208, fp: 192 },
  });
  expect(readVmCode('aarch64', arm64(instructions.slice(1)))).toBeUndefined();
});
