/**
 * Is BEAM, the virtual machine of Erlang and Elixir, in this ELF file, and which version? Told by what it exports for
 * functions that are written in C (`enif_…`), never by the file's name. How its machine code finds what belongs to a thread
 * says the rest; all other places are found in the process.
 */
import { type ElfFile, type Machine, PF_W, PF_X, PT_LOAD } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findNamedSymbols } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { findSchedulerThread } from './scheduler-thread.ts';

/** Facts of the file: plain data, which crosses threads. Addresses are less the difference between address and offset of
 * the segment with the code. */
export interface BeamFile {
  /** Of OTP, such as 25. */
  release: number;
  machine: Machine;
  /** Variables: what may be written to. */
  data: { start: number; bytes: number };
  /** The number of the pthread key under which a thread has its ErtsSchedulerData. */
  threadKey: number;
  /** Offset in that: of the process that runs. */
  currentProcess: number;
  /** the_active_code_index; 0: the build hides it. */
  activeIndex: number;
  /** erts_dirty_process_main, an offset in the file; of no bytes: the build hides it. */
  dirty: { start: number; bytes: number };
  /** The text that the table of atoms is called by. */
  atomTableName: number;
  isMusl: boolean;
}

const MARKER = 'enif_thread_type';
const DIRTY = 'erts_dirty_process_main';
const WANTED = [MARKER, 'the_active_code_index', DIRTY] as const;
const OLDEST = 24;
/** What `erl` greets with. */
const BANNER = /Erlang\/OTP (\d+)%s \[erts-[\d.]+\][^\0]*/;
const BANNER_START = 'Erlang/OTP ';
const ATOM_TABLE = '\0atom_tab\0';
/** Of a section; of variables, which the agent reads in each process, and which have 0.4 MB. */
const MAX_DATA = 64 << 20;
const MAX_VARIABLES = 4 << 20;

/** Undefined where the file has no BEAM. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectBeam(elf: ElfFile): (BeamFile & { version: string }) | undefined {
  const symbols = findNamedSymbols(elf, MARKER, WANTED);
  const threadType = symbols.get(MARKER);
  if (!threadType) return undefined;
  const banner = findText(elf, BANNER_START, BANNER);
  if (!banner) throw new UnsupportedRuntime('Erlang/OTP of unknown version');
  const release = Number(banner[1]);
  const fail = (reason: string): never => {
    throw new UnsupportedRuntime(`Erlang/OTP ${release}: ${reason}`);
  };
  if (release < OLDEST) fail(`${OLDEST}, the first with a JIT, is the oldest`);
  if (!banner[0].includes('[jit'))
    fail('this emulator has no JIT: start erl with -emu_flavor jit, or a build with the JIT');
  const text = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  const data = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_W) !== 0);
  const atomTableName = findAtomTableName(elf);
  const thread = findSchedulerThread(elf, threadType.address);
  if (!text || !data || !thread || atomTableName === 0) return fail('its variables were not found');
  const bias = text.vaddr - text.offset;
  const dirty = symbols.get(DIRTY);
  const activeIndex = symbols.get('the_active_code_index')?.address;
  return {
    version: `${release}`,
    release,
    machine: elf.machine,
    data: { start: data.vaddr - bias, bytes: Math.min(data.memsz, MAX_VARIABLES) },
    threadKey: thread.key - bias,
    currentProcess: thread.currentProcess,
    activeIndex: activeIndex === undefined ? 0 : activeIndex - bias,
    dirty: { start: dirty ? dirty.address - bias : 0, bytes: dirty?.size ?? 0 },
    atomTableName: atomTableName - bias,
    isMusl: usesMusl(elf),
  };
}

/** 0: the file does not have it. */
function findAtomTableName(elf: ElfFile): number {
  const section = elf.section('.rodata');
  if (!section) return 0;
  const bytes = elf.sectionData(section, MAX_DATA);
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(ATOM_TABLE);
  return at < 0 ? 0 : section.addr + at + 1;
}
