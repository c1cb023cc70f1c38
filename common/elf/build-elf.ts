/** Writes ELF files for tests: what a linker would not write either. */

export interface SectionSpec {
  name: string;
  /** SHT_PROGBITS unless told. */
  type?: number;
  flags?: number;
  addr?: number;
  /** `addr` unless told: the tests' files are mapped as they lie. */
  offset?: number;
  bytes: Uint8Array;
  link?: number;
}

export interface SegmentSpec {
  type: number;
  flags?: number;
  offset: number;
  /** `offset` unless told. */
  vaddr?: number;
  filesz: number;
  memsz?: number;
  align?: number;
}

export interface ElfSpec {
  elfClass?: number;
  data?: number;
  machine?: number;
  type?: number;
  entry?: number;
  segments?: readonly SegmentSpec[];
  /** The null section and .shstrtab are added. */
  sections?: readonly SectionSpec[];
  /** False: the section headers are left out, the content stays. */
  sectionHeaders?: boolean;
  /** The file has at least so many bytes. */
  size?: number;
}

const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const SECTION_BYTES = 64;

export function buildElf(spec: ElfSpec): Uint8Array {
  const segments = spec.segments ?? [];
  const names = [...(spec.sections ?? []), { name: '.shstrtab' }].map((s) => `${s.name}\0`);
  const nameBytes = new TextEncoder().encode(`\0${names.join('')}`);
  const sections = [...(spec.sections ?? []), { name: '.shstrtab', type: 3, bytes: nameBytes }];
  let end = Math.max(HEADER_BYTES + segments.length * SEGMENT_BYTES, spec.size ?? 0);
  for (const s of sections) if (offsetOf(s)) end = Math.max(end, offsetOf(s) + s.bytes.length);
  const offsets = sections.map((s) => {
    if (offsetOf(s)) return offsetOf(s);
    const at = end;
    end += s.bytes.length;
    return at;
  });
  const withHeaders = spec.sectionHeaders !== false;
  const out = new Uint8Array(withHeaders ? end + (sections.length + 1) * SECTION_BYTES : end);
  const view = new DataView(out.buffer);
  writeHeader(view, spec, withHeaders ? { at: end, count: sections.length + 1 } : { at: 0, count: 0 });
  for (const [i, s] of segments.entries()) writeSegment(view, HEADER_BYTES + i * SEGMENT_BYTES, s);
  let nameAt = 1;
  for (const [i, s] of sections.entries()) {
    out.set(s.bytes, offsets[i]!);
    if (withHeaders) writeSection(view, end + (i + 1) * SECTION_BYTES, s, offsets[i]!, nameAt);
    nameAt += names[i]!.length;
  }
  return out;
}

const offsetOf = (s: SectionSpec): number => s.offset ?? s.addr ?? 0;

function writeHeader(view: DataView, spec: ElfSpec, table: { at: number; count: number }): void {
  view.setUint32(0, 0x464c457f, true);
  view.setUint8(4, spec.elfClass ?? 2);
  view.setUint8(5, spec.data ?? 1);
  view.setUint8(6, 1);
  view.setUint16(16, spec.type ?? 3, true);
  view.setUint16(18, spec.machine ?? 62, true);
  setU64(view, 24, spec.entry ?? 0);
  setU64(view, 32, HEADER_BYTES);
  setU64(view, 40, table.at);
  view.setUint16(54, SEGMENT_BYTES, true);
  view.setUint16(56, spec.segments?.length ?? 0, true);
  view.setUint16(58, SECTION_BYTES, true);
  view.setUint16(60, table.count, true);
  view.setUint16(62, Math.max(table.count - 1, 0), true);
}

function writeSegment(view: DataView, at: number, s: SegmentSpec): void {
  view.setUint32(at, s.type, true);
  view.setUint32(at + 4, s.flags ?? 4, true);
  setU64(view, at + 8, s.offset);
  setU64(view, at + 16, s.vaddr ?? s.offset);
  setU64(view, at + 32, s.filesz);
  setU64(view, at + 40, s.memsz ?? s.filesz);
  setU64(view, at + 48, s.align ?? 0);
}

function writeSection(view: DataView, at: number, s: SectionSpec, offset: number, nameAt: number): void {
  view.setUint32(at, nameAt, true);
  view.setUint32(at + 4, s.type ?? 1, true);
  setU64(view, at + 8, s.flags ?? 0);
  setU64(view, at + 16, s.addr ?? 0);
  setU64(view, at + 24, offset);
  setU64(view, at + 32, s.bytes.length);
  view.setUint32(at + 40, s.link ?? 0, true);
}

const setU64 = (view: DataView, at: number, value: number): void =>
  view.setBigUint64(at, BigInt(value), true);
