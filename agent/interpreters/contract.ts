/**
 * What a runtime plug-in is. Each has a folder here, one of the same name in ebpf/, and a line in
 * ebpf/runtimes.def.
 *
 * The life of a runtime, in the order in which things happen:
 *
 * 1. DETECT, per file. A file that is reported for the first time is read by the worker that makes unwind tables; each
 *    plug-in is asked whether it is one of its own (`detect`). What it finds is data: facts for naming later, and
 *    `entry`, the value of the runtime's BPF map under the file's key. It parses foreign bytes: every size and
 *    count has a cap, and a throw costs this file its runtime, nothing else.
 * 2. LOAD, once. The first file of a runtime makes the sampler be loaded again with that runtime's code
 *    (agent/tracer/samplers.ts); sampling goes on meanwhile. What does not run on a machine is never loaded there.
 * 3. PUBLISH, per file. The entry goes to the kernel, before the file's unwind table, which takes longer to make: from
 *    then on every process that maps the file is unwound with it, from its first sample; until the table is there
 *    stacks end below the interpreted frames. A runtime whose state can be found from addresses of the file and registers of the
 *    thread, as CPython's, needs nothing per process, nor has it the next stage.
 * 4. ATTACH, per process, only where a plug-in has it: to a runtime that keeps what the unwinder needs where only a walk
 *    through its memory leads to, as HotSpot its code heaps. BPF asks for it when it first meets the runtime in a
 *    process (ebpf/attach.h), `attach` reads the process's memory, and what it returns becomes an entry of the
 *    runtime's BPF map under that very execution of the process. A runtime that is still starting is asked for again.
 *    DETACH is not work of the plug-in's: at exit or exec the entry goes, and with it the facts.
 * 5. UNWIND, in BPF. unwind_step() (ebpf/unwind.h) calls the runtime at each native frame in a file that has one.
 *    It pushes the interpreted frames that this native frame runs, two words each (ebpf/records.h), and leaves
 *    the native frame itself to the native unwinder. The words must tell any two functions apart, also such as
 *    follow each other at one address.
 * 6. NAME, on the host. The words of a new trace are turned into names at once, since they are read from the
 *    memory of a process that may end soon (`nameFrame`).
 *
 * A plug-in imports common/, this file, the generated records and its own folder; a rule file enforces it.
 */
import type { ElfFile } from '../../common/elf/elf.ts';
import type { FrameType } from '../../common/profile/model/profile.ts';

/** What detection found in a file; crosses threads, so it is plain data. */
export interface DetectedRuntime {
  /** `name` of the plug-in. */
  runtime: string;
  /** For people: `3.13.5`. */
  version: string;
  /** What the plug-in's `nameFrame` needs of the file. */
  facts: unknown;
  /** Value of the plug-in's BPF map; empty where that has entries of processes. */
  entry: Uint8Array;
}

/** What attaching to a process gave. */
export interface AttachedRuntime {
  /** Value of the plug-in's BPF map, which begins with a struct ef_attachment that is left empty. */
  entry: Uint8Array;
  /** What `nameFrame` is given of this process, in place of the file's. */
  facts: unknown;
  /** As the process was started, lines and inlined callees of its compiled code are not exact. */
  hasApproximateLines?: boolean;
}

/** The file is one of the runtime's, but can't be unwound; the message says why, for people. */
export class UnsupportedRuntime extends Error {
  override readonly name = 'UnsupportedRuntime';
}

/** Memory of a live process. Addresses are below 2^48. */
export interface ProcessMemory {
  /**
   * Up to `length` bytes, fewer where the rest is not mapped; undefined where nothing can be read. Copy what is kept:
   * the bytes are another page's once the process is given with another object.
   */
  read(address: number, length: number): Uint8Array | undefined;
}

/** A frame as it stands in a trace. */
export interface FrameWords {
  /** Operand of the header word: an address or an offset, up to 53 bits. */
  operand: number;
  /** The second word as a u32 pair. */
  low: number;
  high: number;
}

export interface RuntimeFrame {
  name: string;
  /** '' if unknown. */
  file: string;
  /** 0 if unknown; columns count from 1. */
  line: number;
  column: number;
  /** First line of the function, 0 if unknown. */
  startLine: number;
  /** Where its parameters begin in that line; left out where the runtime doesn't have it. */
  startColumn?: number;
  /** It is the runtime's own, and has no line in any source. */
  isPlaceless?: boolean;
  /** Of a runtime whose lines are told by PDBs; left out where the code came from no file. */
  assembly?: AssemblyPlace;
}

/** A place in an assembly's code, which its PDB has the line of. */
export interface AssemblyPlace {
  /** Path of the assembly, as the process sees it. */
  file: string;
  /** GUID of the module in it, in hexadecimal digits. */
  moduleId: string;
  /** Of the method in the module's metadata, from 1. */
  row: number;
  /** In the method. */
  ilOffset: number;
}

/** What says more of a frame's place than its runtime does. */
export type LinesFrom = 'source-map' | 'pdb';

/** Why a frame has no name. */
export type NameFailure =
  /** The process ended, or its memory can't be read. */
  | 'unreadable'
  /** Something else stands there by now. */
  | 'replaced'
  /** What stands there contradicts itself. */
  | 'malformed';

/** What a plug-in remembers of one process; it is dropped when all of them together hold too much. */
export class NameCache extends Map<number, unknown> {
  /** What the plug-in says that its entries hold, roughly. */
  bytes = 0;

  override clear(): void {
    super.clear();
    this.bytes = 0;
  }
}

/** What the unwinder has read of a function at a sample: struct ef_function. */
export interface SampledFunction {
  /** As in {@link FrameWords}: the operand, and the second word's low half. */
  operand: number;
  cookie: number;
  /** As the runtime numbers its kinds of functions. */
  kind: number;
  /** '' where there is none. */
  className: string;
  name: string;
  file: string;
  firstLine: number;
  lastLine: number;
}

export interface RuntimePlugin {
  readonly name: string;
  /**
   * How files that hold it are usually called. They are read before others, so that a new process soon has its names;
   * what is in a file is told by `detect` alone.
   */
  readonly fileName: RegExp;
  /** enum ef_runtime. */
  readonly id: number;
  /**
   * Its BPF map, made when its code is loaded. It is keyed by file key and gets the entries of files; with `attach` it
   * is keyed by struct ef_process_id and gets those of processes.
   */
  readonly map: string;
  /** enum ef_frame_kind of its frames. */
  readonly frameKind: number;
  readonly frameType: FrameType;
  /** Its functions are those of a text that a source map may lead from, or of assemblies with PDBs. */
  readonly linesFrom?: LinesFrom;
  /** Undefined where the file is none of its own. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
  detect(elf: ElfFile): DetectedRuntime | undefined;
  /**
   * Undefined: not yet, what it needs is not there. `base` is the address at which offset 0 of the file would be in the
   * mapping with the runtime's code; `facts` are the file's. Throws {@link UnsupportedRuntime} where the process contradicts
   * what its file says, or itself: it is hostile until it is read. It runs on the main thread, so it takes some
   * milliseconds at most.
   */
  attach?(memory: ProcessMemory, base: number, facts: unknown): AttachedRuntime | undefined;
  /** Of a runtime whose functions may be freed soon: keeps the name of one for the frames that have it. */
  takeFunction?(read: SampledFunction, cache: NameCache): void;
  /**
   * Names of one process are asked for with the same `cache`, which is the plug-in's own. Several frames are functions
   * that a compiler has inlined into one another, the innermost first. `baseOf` reads at which address offset 0 of the
   * runtime's file would be, as for `attach`: asked for where names hang on a variable of the file.
   */
  nameFrame(
    words: FrameWords,
    facts: unknown,
    memory: ProcessMemory,
    cache: NameCache,
    baseOf?: () => number | undefined,
  ): RuntimeFrame | readonly RuntimeFrame[] | NameFailure;
}
