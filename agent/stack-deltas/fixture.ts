/** Files with given frame sections, and their stack deltas as text, for tests. */

import { bufferSource } from '../../common/base/byte-source.ts';
import { lastAtOrBelow } from '../../common/base/search.ts';
import { buildElf, type ElfSpec, type SectionSpec } from '../../common/elf/build-elf.ts';
import { type ElfFile, PF_X, PT_LOAD, parseElf } from '../../common/elf/elf.ts';
import { buildFrames, type CieSpec, type RecordSpec } from './build-frames.ts';
import { describeRule } from './rules/describe.ts';
import { extractStackDeltas, type StackDeltas } from './stack-deltas.ts';

/** Code lies at 0x1000 to 0x3000 of the file and of memory, .eh_frame at 0x4000, .debug_frame behind. */
export const CODE_AT = 0x1000;
export const CODE_BYTES = 0x2000;
export const EH_FRAME_AT = 0x4000;

export interface FrameSpec {
  eh?: readonly RecordSpec[];
  debug?: readonly RecordSpec[];
  machine?: number;
  code?: Uint8Array;
  entry?: number;
  elf?: Partial<ElfSpec>;
  sections?: readonly SectionSpec[];
}

export function elfWithFrames(spec: FrameSpec): ElfFile {
  const sections = [
    { name: '.text', addr: CODE_AT, flags: 6, bytes: spec.code ?? new Uint8Array(CODE_BYTES) },
  ];
  const eh = spec.eh && buildFrames(EH_FRAME_AT, spec.eh);
  if (eh) sections.push({ name: '.eh_frame', addr: EH_FRAME_AT, flags: 2, bytes: eh });
  const all: SectionSpec[] = [...sections, ...(spec.sections ?? [])];
  if (spec.debug) all.push({ name: '.debug_frame', bytes: buildFrames(0, spec.debug, 'debug') });
  const elf: ElfSpec = {
    machine: spec.machine ?? 62,
    entry: spec.entry ?? 0,
    segments: [
      { type: PT_LOAD, flags: PF_X | 4, offset: CODE_AT, filesz: CODE_BYTES },
      { type: PT_LOAD, flags: 4, offset: EH_FRAME_AT, filesz: eh?.length ?? 0 },
    ],
    sections: all,
    ...spec.elf,
  };
  return parseElf(bufferSource(buildElf(elf)));
}

export const deltasOf = (spec: FrameSpec): StackDeltas => extractStackDeltas(elfWithFrames(spec));

/** `0x1000 rsp+8 same cfa-8`, a row a line; kinds without a CFA as their name. */
export function textOf(deltas: StackDeltas): string[] {
  return [...deltas.addresses].map(
    (address, i) => `0x${address.toString(16)} ${ruleTextOf(deltas, deltas.ruleIds[i]!)}`,
  );
}

function ruleTextOf(deltas: StackDeltas, id: number): string {
  const { kind, cfa, fp, ra, interrupted } = describeRule(deltas.rules[id]!, deltas.machine);
  return cfa === undefined ? kind : `${cfa} ${fp} ${ra}${interrupted ? ' interrupted' : ''}`;
}

export function ruleTextAt(deltas: StackDeltas, address: number): string {
  const row = lastAtOrBelow(deltas.addresses, address);
  return row < 0 ? 'invalid' : ruleTextOf(deltas, deltas.ruleIds[row]!);
}

/** Rows of one function of 0x100 bytes at 0x1000 with this program. */
export function rowsOf(program: readonly number[], cie: CieSpec = {}, machine = 62): string[] {
  return textOf(deltasOf({ machine, eh: [cie, { start: CODE_AT, size: 0x100, program }] }));
}
