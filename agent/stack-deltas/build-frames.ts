/** Writes .eh_frame and .debug_frame for tests: whatever a compiler, or an attacker, could have written. */

export class ByteWriter {
  readonly bytes: number[] = [];

  u8(...values: number[]): this {
    this.bytes.push(...values.map((v) => v & 0xff));
    return this;
  }

  uint(value: number, size: number): this {
    let rest = BigInt.asUintN(64, BigInt(value));
    for (let i = 0; i < size; i++, rest >>= 8n) this.bytes.push(Number(rest & 0xffn));
    return this;
  }

  uleb(value: number): this {
    let rest = BigInt(value);
    do {
      const byte = Number(rest & 0x7fn);
      rest >>= 7n;
      this.bytes.push(rest === 0n ? byte : byte | 0x80);
    } while (rest !== 0n);
    return this;
  }

  sleb(value: number): this {
    let rest = BigInt(value);
    for (;;) {
      const byte = Number(rest & 0x7fn);
      rest >>= 7n;
      const isLast = (rest === 0n && !(byte & 0x40)) || (rest === -1n && (byte & 0x40) !== 0);
      this.bytes.push(isLast ? byte : byte | 0x80);
      if (isLast) return this;
    }
  }

  text(value: string): this {
    return this.u8(...Buffer.from(value, 'latin1'), 0);
  }

  raw(bytes: Iterable<number>): this {
    for (const byte of bytes) this.bytes.push(byte);
    return this;
  }
}

export interface CieSpec {
  version?: number;
  /** `zR` with pcrel | sdata4 in .eh_frame, nothing in .debug_frame. */
  augmentation?: string;
  /** Behind the augmentation's length; one byte of encoding unless told. */
  augmentationData?: readonly number[];
  encoding?: number;
  codeAlign?: number;
  dataAlign?: number;
  ra?: number;
  /** CFA = rsp + 8, return address at CFA - 8 unless told. */
  program?: readonly number[];
  is64?: boolean;
}

export interface FdeSpec {
  start: number;
  size: number;
  program?: readonly number[];
  /** Index of its CIE among the records; the last one before it unless told. */
  cie?: number;
}

export type RecordSpec = CieSpec | FdeSpec | 'zero' | { raw: readonly number[] };

/** DW_CFA_def_cfa rsp 8; DW_CFA_offset ra at CFA - 8. */
export const CIE_PROGRAM = [0x0c, 7, 8, 0x80 | 16, 1] as const;
/** As glibc's __restore_rt: CFA and the interrupted program counter lie where the kernel's frame has them. */
export const KERNEL_FRAME: CieSpec = {
  augmentation: 'zRS',
  program: [0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1],
};

const isFde = (r: RecordSpec): r is FdeSpec => typeof r === 'object' && 'start' in r;

export function buildFrames(
  address: number,
  records: readonly RecordSpec[],
  kind: 'eh' | 'debug' = 'eh',
): Uint8Array {
  const out: number[] = [];
  const cies: { at: number; spec: CieSpec; index: number }[] = [];
  for (const [index, record] of records.entries()) {
    if (record === 'zero') out.push(0, 0, 0, 0);
    else if ('raw' in record) out.push(...record.raw);
    else if (isFde(record)) {
      const cie = cies.find((c) => c.index === record.cie) ?? cies.at(-1)!;
      writeFde(out, address, record, cie, kind);
    } else {
      cies.push({ at: out.length, spec: record, index });
      writeCie(out, record, kind);
    }
  }
  return Uint8Array.from(out);
}

function finish(out: number[], body: ByteWriter, is64: boolean): void {
  while (body.bytes.length % 4 !== 0) body.u8(0);
  const head = new ByteWriter();
  if (is64) head.uint(0xffffffff, 4).uint(body.bytes.length, 8);
  else head.uint(body.bytes.length, 4);
  for (const byte of [...head.bytes, ...body.bytes]) out.push(byte);
}

function writeCie(out: number[], spec: CieSpec, kind: 'eh' | 'debug'): void {
  const body = new ByteWriter();
  if (kind === 'eh') body.uint(0, 4);
  else body.uint(-1, spec.is64 ? 8 : 4);
  const version = spec.version ?? (kind === 'eh' ? 1 : 3);
  const augmentation = spec.augmentation ?? (kind === 'eh' ? 'zR' : '');
  body.u8(version).text(augmentation);
  if (version === 4) body.u8(8, 0);
  body.uleb(spec.codeAlign ?? 1).sleb(spec.dataAlign ?? -8);
  body.uleb(spec.ra ?? 16);
  if (augmentation.startsWith('z')) {
    const data = spec.augmentationData ?? (augmentation.includes('R') ? [spec.encoding ?? 0x1b] : []);
    body.uleb(data.length).raw(data);
  }
  finish(out, body.raw(spec.program ?? CIE_PROGRAM), spec.is64 ?? false);
}

const SIZES: Readonly<Record<number, number>> = { 0: 8, 2: 2, 3: 4, 4: 8, 8: 8, 10: 2, 11: 4, 12: 8 };

function writeFde(
  out: number[],
  address: number,
  spec: FdeSpec,
  cie: { at: number; spec: CieSpec },
  kind: 'eh' | 'debug',
): void {
  const is64 = cie.spec.is64 ?? false;
  const body = new ByteWriter();
  const headBytes = is64 ? 12 : 4;
  if (kind === 'eh') body.uint(out.length + headBytes - cie.at, 4);
  else body.uint(cie.at, is64 ? 8 : 4);
  const augmentation = cie.spec.augmentation ?? (kind === 'eh' ? 'zR' : '');
  const encoding = augmentation.includes('R') ? (cie.spec.encoding ?? 0x1b) : 0;
  const at = address + out.length + headBytes + body.bytes.length;
  writeEncoded(body, spec.start - ((encoding & 0x70) === 0x10 ? at : 0), encoding);
  writeEncoded(body, spec.size, encoding);
  if (augmentation.startsWith('z')) body.uleb(0);
  finish(out, body.raw(spec.program ?? []), is64);
}

function writeEncoded(body: ByteWriter, value: number, encoding: number): void {
  const format = encoding & 0x0f;
  if (format === 1) body.uleb(value);
  else if (format === 9) body.sleb(value);
  else body.uint(value, SIZES[format] ?? 8);
}
