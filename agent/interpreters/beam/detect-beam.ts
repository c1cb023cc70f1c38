/**
 * Is BEAM, the virtual machine of Erlang and Elixir, in this ELF file, and which version? Told by what it exports for
 * functions that are written in C (`enif_…`), never by the file's name. How its machine code finds what belongs to a thread
 * says the rest; all other places are found in the process.
 */
import { bytesAt } from '../../../common/elf/bytes-at.ts';
import { type ElfFile, PF_W, PF_X, PT_LOAD } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findNamedSymbols } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';

/** Facts of the file: plain data, which crosses threads. Addresses are less the difference between address and offset of
 * the segment with the code. */
export interface BeamFile {
  /** Of OTP, such as 25. */
  release: number;
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
const CODE_BYTES = 64;

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
  if (elf.machine !== 'x86_64') fail('only on amd64');
  const text = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  const data = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_W) !== 0);
  const atomTableName = findAtomTableName(elf);
  const thread = findThread(elf, threadType.address);
  if (!text || !data || !thread || atomTableName === 0) return fail('its variables were not found');
  const bias = text.vaddr - text.offset;
  const dirty = symbols.get(DIRTY);
  const activeIndex = symbols.get('the_active_code_index')?.address;
  return {
    version: `${release}`,
    release,
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

/**
 * enif_thread_type() asks for the thread's ErtsSchedulerData, and reads its type, in front of which stands the process:
 *
 *   call erts_get_scheduler_data; …; mov type(%rax),%eax        mov key(%rip),%edi; jmp ethr_tsd_get
 */
function findThread(elf: ElfFile, address: number): { key: number; currentProcess: number } | undefined {
  const code = codeAt(elf, address);
  const call = code?.indexOf(0xe8) ?? -1;
  const type = code?.indexOf(Buffer.from([0x8b, 0x80]), call) ?? -1;
  if (!code || call < 0 || type < 0 || type + 6 > code.length) return undefined;
  const target = address + call + 5 + code.readInt32LE(call + 1);
  const callee = codeAt(elf, target);
  const key = callee?.indexOf(Buffer.from([0x8b, 0x3d])) ?? -1;
  if (!callee || key < 0 || key > 16) return undefined;
  return {
    key: target + key + 6 + callee.readInt32LE(key + 2),
    currentProcess: code.readInt32LE(type + 2) - 8,
  };
}

function codeAt(elf: ElfFile, address: number): Buffer | undefined {
  const bytes = bytesAt(elf, address, CODE_BYTES);
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
