/** ELF files and source maps that are small for what they make of their readers: memory, time and stack. */
import { spawnSync } from 'node:child_process';
import { deflateSync } from 'node:zlib';
import { buildElf, type SectionSpec, type SegmentSpec } from '../../common/elf/build-elf.ts';

const MIB = 2 ** 20;
/** What compressed ones unpack to. */
const BOMB_BYTES = 320 * MIB;
const SHT_SYMTAB = 2;
const SHT_STRTAB = 3;
const SHF_COMPRESSED = 0x800;
const CODE_AT = 0x1000;
const CODE_BYTES = 0x1000;
/** Of the code, where names are asked for. */
export const HOSTILE_ADDRESS = CODE_AT + 8;

const code: SectionSpec = { name: '.text', flags: 6, addr: CODE_AT, bytes: new Uint8Array(CODE_BYTES) };
const load: SegmentSpec = { type: 1, flags: 5, offset: CODE_AT, filesz: CODE_BYTES };

const elf = (...sections: SectionSpec[]): Uint8Array =>
  buildElf({ segments: [load], sections: [code, ...sections] });

/** A unit of DWARF 4 for the code, and what is in it. */
function unit(body: Uint8Array): Buffer {
  const head = Buffer.alloc(11 + 17);
  head.writeUInt32LE(head.length - 4 + body.length, 0);
  head.writeUInt16LE(4, 4);
  head.writeUInt8(8, 10);
  head.writeUInt8(1, 11);
  head.writeBigUInt64LE(BigInt(CODE_AT), 12);
  head.writeBigUInt64LE(BigInt(CODE_BYTES), 20);
  return Buffer.concat([head, body]);
}

/** 1: a unit with its range; 2: a block that holds others. */
const ABBREVIATIONS = Buffer.from('011101110112070000' + '020b010000' + '00', 'hex');

/** DIEs as deep as there are bytes. */
export const deepDies = (bytes: number): { info: Buffer; abbrev: Buffer } => ({
  info: unit(Buffer.alloc(bytes, 2)),
  abbrev: ABBREVIATIONS,
});

function uleb(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...uleb(Math.floor(value / 128))];
}

function manyAbbreviations(bytes: number): Buffer {
  const all = Buffer.alloc(bytes + 64);
  let at = ABBREVIATIONS.copy(all) - 1;
  for (let number = 3; at < bytes; number++)
    at += Buffer.from([...uleb(number), 0x34, 0, 3, 8, 0, 0]).copy(all, at);
  return all;
}

/** The head of a compressed section, and what is to be behind it. */
function compressed(kind: number, size: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(kind, 0);
  head.writeBigUInt64LE(BigInt(size), 8);
  head.writeBigUInt64LE(1n, 16);
  return Buffer.concat([head, content]);
}

/** Blocks of one byte, repeated 128 KiB times each. */
function zstdBomb(): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32LE(0xfd2fb528, 0);
  head.writeUInt8(0xe0, 4);
  head.writeBigUInt64LE(BigInt(BOMB_BYTES), 5);
  const blockBytes = 128 * 1024;
  const blocks = BOMB_BYTES / blockBytes;
  const block = (isLast: number): number[] => {
    const word = isLast | (1 << 1) | (blockBytes << 3);
    return [word & 255, (word >> 8) & 255, (word >> 16) & 255, 0];
  };
  const body = Array.from({ length: blocks }, (_, i) => block(i === blocks - 1 ? 1 : 0));
  return Buffer.concat([head, Buffer.from(body.flat())]);
}

/** Undefined where there is no xz. */
function xzBomb(): Buffer | undefined {
  const { stdout } = spawnSync('sh', ['-c', `head -c ${BOMB_BYTES / 4} /dev/zero | xz -0`], {
    maxBuffer: 64 * MIB,
  });
  return stdout.length > 0 ? stdout : undefined;
}

function hugeSymbolTable(): Uint8Array {
  const count = 3 * MIB;
  const symbols = Buffer.alloc(count * 24);
  for (let i = 1; i < count; i++) {
    symbols.writeUInt32LE(1 + (i % 1000), i * 24);
    symbols.writeUInt8(0x12, i * 24 + 4);
    symbols.writeUInt16LE(1, i * 24 + 6);
    symbols.writeUInt32LE(CODE_AT + (i % CODE_BYTES), i * 24 + 8);
    symbols.writeUInt32LE(1 + (i % 7), i * 24 + 16);
  }
  const names = Buffer.alloc(MIB, 'a');
  return elf(
    { name: '.symtab', type: SHT_SYMTAB, link: 3, bytes: symbols },
    { name: '.strtab', type: SHT_STRTAB, bytes: names },
  );
}

/** The sizes of all sections, and their number, say more than there is. */
function lyingHeaders(): Uint8Array {
  const file = elf({ name: '.symtab', type: SHT_SYMTAB, link: 3, bytes: new Uint8Array(240) });
  const view = new DataView(file.buffer);
  const at = Number(view.getBigUint64(40, true));
  for (let i = 2; i < 4; i++) view.setBigUint64(at + i * 64 + 32, 2n ** 52n, true);
  view.setUint16(60, 0xfeff, true);
  return file;
}

function goTable(): Uint8Array {
  const table = Buffer.alloc(8 * MIB, 0x7f);
  table.writeUInt32LE(0xfffffff1, 0);
  table.writeUInt32LE(0x08010000, 4);
  table.writeBigUInt64LE(2n ** 40n, 8);
  for (let i = 2; i < 9; i++) table.writeBigUInt64LE(BigInt(i * 64), i * 8);
  return elf({ name: '.gopclntab', bytes: table });
}

/** One frame whose CFA is an expression of millions of operations. */
function longExpression(): Uint8Array {
  const operations = 16 * MIB;
  const cie = Buffer.from('1400000000000000010001781001000c07089001000000000'.padEnd(48, '0'), 'hex');
  const head = Buffer.alloc(24);
  const expression = Buffer.concat([
    Buffer.from([0x0f, ...uleb(operations)]),
    Buffer.alloc(operations, 0x12),
  ]);
  head.writeUInt32LE(20 + expression.length, 0);
  head.writeUInt32LE(28, 4);
  head.writeBigUInt64LE(BigInt(CODE_AT), 8);
  head.writeBigUInt64LE(BigInt(CODE_BYTES), 16);
  return elf({ name: '.eh_frame', flags: 2, bytes: Buffer.concat([cie, head, expression, Buffer.alloc(4)]) });
}

function lyingSframe(): Uint8Array {
  const table = Buffer.alloc(4 * MIB, 0xff);
  table.writeUInt16LE(0xdee2, 0);
  table.writeUInt8(2, 2);
  table.writeUInt8(1, 3);
  table.writeUInt8(3, 4);
  table.writeUInt8(0, 7);
  table.writeUInt32LE(0xffff_ffff, 8);
  table.writeUInt32LE(0xffff_ffff, 12);
  return elf({ name: '.sframe', flags: 2, bytes: table });
}

const manySegments = (): Uint8Array =>
  buildElf({
    segments: Array.from(
      { length: 0xfff0 },
      (): SegmentSpec => ({ ...load, filesz: 2 ** 40, memsz: 2 ** 47 }),
    ),
    size: 5 * MIB,
  });

/** By what is wrong with them. */
export function hostileElves(): Map<string, Uint8Array> {
  const deep = deepDies(32 * MIB);
  const zeros = deflateSync(Buffer.alloc(BOMB_BYTES / 2));
  const info = { name: '.debug_info', flags: SHF_COMPRESSED };
  const abbrev = { name: '.debug_abbrev', bytes: ABBREVIATIONS };
  const xz = xzBomb();
  return new Map<string, Uint8Array>([
    ['headers that lie', lyingHeaders()],
    ['65,520 segments', manySegments()],
    ['3 million symbols', hugeSymbolTable()],
    ['32 million DIEs in one another', elf({ name: '.debug_info', bytes: deep.info }, abbrev)],
    [
      '32 MiB of abbreviations',
      elf(
        { name: '.debug_info', bytes: unit(Buffer.alloc(64, 3)) },
        { ...abbrev, bytes: manyAbbreviations(32 * MIB) },
      ),
    ],
    ['a zlib bomb', elf({ ...info, bytes: compressed(1, BOMB_BYTES / 2, zeros) }, abbrev)],
    ['a zlib bomb that says it is small', elf({ ...info, bytes: compressed(1, 4096, zeros) }, abbrev)],
    ['a zstd bomb', elf({ ...info, bytes: compressed(2, BOMB_BYTES, zstdBomb()) }, abbrev)],
    ['a zstd bomb that says it is small', elf({ ...info, bytes: compressed(2, 4096, zstdBomb()) }, abbrev)],
    ...(xz ? [['an xz bomb', elf({ name: '.gnu_debugdata', bytes: xz })] as [string, Uint8Array]] : []),
    ["Go's table with 2^40 functions", goTable()],
    ['an expression of 16 million operations', longExpression()],
    ['SFrame with 2^32 functions', lyingSframe()],
  ]);
}

/** Just within what is read of a map: segments, lines, sections, and JSON as deep as it is long. */
export function hostileMaps(): Map<string, string> {
  const bytes = 63 * MIB;
  const head = '{"version":3,"sources":["a.ts"],"names":[],"mappings":"';
  const section =
    '{"offset":{"line":0,"column":0},"map":{"version":3,"sources":[],"names":[],"mappings":""}},';
  return new Map([
    ['segments', `${head}${'AAAA,'.repeat(bytes / 5)}A"}`],
    ['lines', `${head}${';'.repeat(bytes)}"}`],
    ['sections', `{"version":3,"sections":[${section.repeat(bytes / section.length).slice(0, -1)}]}`],
    ['depth', '['.repeat(bytes)],
  ]);
}

/** As a JIT may write them, or whoever has a process: 64 MiB of functions, all at one place, and without an end of line. */
export function* hostilePerfMaps(): Generator<[string, Buffer]> {
  const bytes = 64 * MIB;
  const line = (i: number): string => `${(0x10000 + 16 * i).toString(16).padStart(10, '0')} 10 f\n`;
  const length = line(0).length;
  const many = Buffer.alloc(bytes);
  for (let i = 0; (i + 1) * length <= bytes; i++) many.write(line(i), i * length, 'latin1');
  yield ['4.2 million functions', many];
  yield ['one place, again and again', Buffer.alloc(bytes, '1000 fffffffffff f\n')];
  yield ['a line that does not end', Buffer.alloc(bytes, '1')];
}
