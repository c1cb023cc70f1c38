/** Where the unwind information is that a JIT has registered, of code in one process that no file backs. */
import type { Pid } from '../../common/base/brand.ts';
import { type ForeignFiles, memoryReader, type ReadAt } from '../processes/foreign-files.ts';
import type { ProcessMapping } from '../processes/process-maps.ts';
import type { FrameSection } from '../stack-deltas/sources/frame-section.ts';
import { findFrameLists, joinLists, type MemoryPart } from './registered-frames.ts';
import { type DescribedCode, findJitDescriptor, readDescribedCode } from './registered-objects.ts';

/** A JIT's unwind information refers to its code by distances of 32 bits. */
export const REACH_BYTES = 64 << 20;
const MAX_SEARCHED_BYTES = 16 << 20;
const MAX_PART_BYTES = 4 << 20;

export interface SearchedProcess {
  files: ForeignFiles;
  pid: Pid;
  mappings: readonly ProcessMapping[];
}

/** What was found for one piece of code is there for those beside it. */
export class FrameSearch {
  readonly #process: SearchedProcess;
  readonly #memory: ReadAt;
  readonly #found: { start: number; lists: MemoryPart[] }[] = [];
  #descriptor: number | 'unknown' | undefined;
  #described: DescribedCode[] | undefined;

  /** `descriptor`: of what is registered for debuggers; looked for where it is unknown. */
  constructor(process: SearchedProcess, descriptor: number | 'unknown' | undefined) {
    this.#process = process;
    this.#memory = memoryReader(process.files, process.pid);
    this.#descriptor = descriptor;
  }

  /** Undefined where there is none, as far as it was looked for. */
  get descriptor(): number | undefined {
    return this.#descriptor === 'unknown' ? undefined : this.#descriptor;
  }

  /** What is registered for debuggers says which code it is about, so it comes first. */
  async framesOf(code: ProcessMapping): Promise<FrameSection | undefined> {
    this.#described ??= await this.#readDescribed();
    const described = this.#described.find(({ start, end }) => start < code.end && end > code.start);
    if (described) return described.frames;
    // only in memory of the process alone: of what it shares it can map a page 65,000 times
    if (code.path !== '') return undefined;
    const lists = await this.#near(code);
    return lists.length > 0 ? joinLists(lists) : undefined;
  }

  async #readDescribed(): Promise<DescribedCode[]> {
    const { files, pid } = this.#process;
    if (this.#descriptor === 'unknown') this.#descriptor = await findJitDescriptor(files, pid);
    return this.#descriptor === undefined ? [] : readDescribedCode(this.#descriptor, this.#memory);
  }

  async #near(code: ProcessMapping): Promise<MemoryPart[]> {
    const known = this.#found.find(({ start }) => Math.abs(start - code.start) < REACH_BYTES / 2);
    if (known) return known.lists;
    const lists = await searchNear(this.#process.mappings, code, this.#memory);
    this.#found.push({ start: code.start, lists });
    return lists;
  }
}

/** Readable memory around the code that no file backs, the nearest first. */
async function searchNear(
  mappings: readonly ProcessMapping[],
  code: ProcessMapping,
  memory: ReadAt,
): Promise<MemoryPart[]> {
  const distance = ({ start }: ProcessMapping): number => Math.abs(start - code.start);
  const near = mappings
    .filter((m) => m.isReadable && m.path === '' && distance(m) < REACH_BYTES)
    .sort((a, b) => distance(a) - distance(b));
  const lists: MemoryPart[] = [];
  let left = MAX_SEARCHED_BYTES;
  for (const { start, end } of near) {
    const bytes = Buffer.alloc(Math.min(end - start, MAX_PART_BYTES, left));
    if (bytes.length === 0) break;
    left -= bytes.length;
    const bytesRead = await memory(start, bytes);
    lists.push(...findFrameLists({ start, bytes: bytes.subarray(0, bytesRead) }));
  }
  return lists.sort((a, b) => a.start - b.start);
}
