/** Writes tables as Go's linker does, for tests. */

export interface GoFunctionSpec {
  name: string;
  start: number;
  /** From which offset in the function on the stack has so many bytes more than at its entry. */
  sizes: readonly (readonly [offset: number, bytes: number])[];
  /** Of C: no source file is told. */
  isC?: boolean;
}

export interface GoTableSpec {
  /** 1.16, 1.18 or 1.20: the release that brought the form. */
  form: '1.16' | '1.18' | '1.20';
  textStart: number;
  /** As the header says it; 0 from Go 1.26 on. */
  saysTextStart?: number;
  end: number;
  functions: readonly GoFunctionSpec[];
  quantum?: number;
}

const MAGIC = { '1.16': 0xfffffffa, '1.18': 0xfffffff0, '1.20': 0xfffffff1 } as const;
const UNITS = 4;
const FILES = 4;
const RECORD_BYTES = 48;

export function buildGoPclntab(spec: GoTableSpec): Uint8Array {
  const isRelative = spec.form !== '1.16';
  const word = isRelative ? 4 : 8;
  const base = isRelative ? spec.textStart : 0;
  const names: number[] = [0];
  const programs: number[] = [0];
  const placed = spec.functions.map((f, i) => {
    const frame = programs.length;
    const at = { start: f.start, name: names.length, frame, file: f.isC ? 0 : frame };
    names.push(...Buffer.from(`${f.name}\0`));
    programs.push(...encodeSizes(f, spec.functions[i + 1]?.start ?? spec.end, spec.quantum ?? 1));
    return at;
  });
  const header = isRelative ? 72 : 64;
  const pairs = (placed.length + 1) * word * 2;
  const table = Buffer.alloc(pairs + placed.length * RECORD_BYTES);
  const put = (value: number, at: number): void => {
    if (isRelative) table.writeUInt32LE(value, at);
    else table.writeBigUInt64LE(BigInt(value), at);
  };
  for (const [i, f] of placed.entries()) {
    const record = pairs + i * RECORD_BYTES;
    put(f.start - base, i * word * 2);
    put(record, i * word * 2 + word);
    put(f.start - base, record);
    table.writeUInt32LE(f.name, record + word);
    table.writeUInt32LE(f.frame, record + word + 12);
    table.writeUInt32LE(f.file, record + word + 16);
  }
  put(spec.end - base, placed.length * word * 2);
  const head = Buffer.alloc(header);
  head.writeUInt32LE(MAGIC[spec.form]);
  head[6] = spec.quantum ?? 1;
  head[7] = 8;
  const namesAt = header;
  const unitsAt = namesAt + names.length;
  const programsAt = unitsAt + UNITS + FILES;
  const words = [
    placed.length,
    0,
    namesAt,
    unitsAt,
    unitsAt + UNITS,
    programsAt,
    programsAt + programs.length,
  ];
  if (isRelative) words.splice(2, 0, spec.saysTextStart ?? spec.textStart);
  for (const [i, value] of words.entries()) head.writeBigUInt64LE(BigInt(value), 8 + i * 8);
  return Buffer.concat([head, Buffer.from(names), Buffer.alloc(UNITS + FILES), Buffer.from(programs), table]);
}

function encodeSizes(f: GoFunctionSpec, end: number, quantum: number): number[] {
  const bytes: number[] = [];
  let value = -1;
  for (const [i, [offset, size]] of f.sizes.entries()) {
    const next = f.sizes[i + 1]?.[0] ?? end - f.start;
    const change = size - value;
    bytes.push(...uleb(change < 0 ? -change * 2 - 1 : change * 2), ...uleb((next - offset) / quantum));
    value = size;
  }
  return [...bytes, 0];
}

function uleb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}
