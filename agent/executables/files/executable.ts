/** One executable file, as it was when a process mapped it. */
import type { FileId, FileKey } from '../../../common/base/brand.ts';
import { toFileId } from '../../../common/base/brand.ts';
import { PF_X, PT_LOAD, type Segment } from '../../../common/elf/elf.ts';
import type { CodeRange } from '../../../common/elf/go-code.ts';
import { emptyMapping, type Mapping } from '../../../common/profile/model/profile.ts';
import type { DetectedRuntime } from '../../interpreters/contract.ts';
import type { FileRecord } from '../../records/records.ts';
import type { FileIdentity } from './open-file.ts';

export type ExecutableState =
  /** Being opened, or waiting for it. */
  | 'opening'
  /** Open; its table is being made. */
  | 'reading'
  /** Its table is in the kernel. */
  | 'ready'
  /** Open, but it has nothing to unwind with, or its table does not fit. */
  | 'no-table'
  /** Open, but no ELF file that can be read. */
  | 'not-elf'
  /** Not open: BPF reports it again after a while. */
  | 'failed';

export interface Executable {
  readonly key: FileKey;
  /** As the kernel saw it: in a container, the container's. */
  readonly path: string;
  /** Last component of the path. */
  readonly name: string;
  readonly identity: FileIdentity;
  readonly size: number;
  state: ExecutableState;
  /** Why the state is 'failed', 'no-table' or 'not-elf': a sentence, '' otherwise. */
  reason: string;
  /** '' until it is read. */
  fileId: FileId;
  gnuBuildId: string;
  goBuildId: string;
  /** Code in it that Go's compiler made. */
  goCode: CodeRange | undefined;
  /** The language runtime that the file contains. */
  runtime: DetectedRuntime | undefined;
  /** PT_LOAD segments. */
  segments: readonly Segment[];
  /** The path that it was opened by, '' if it was not. */
  openedPath: string;
  /** The mapping that it was copied from, if it can't be opened: see mapped-image.ts. */
  copiedFrom: FileRecord | undefined;
  /** The whole file where it has no descriptor: the vDSO. */
  bytes: Uint8Array | undefined;
  /** Failed attempts in a row. */
  failures: number;
  /** When its table was made last, milliseconds of performance.now(). */
  builtAt: number;
  /** When its symbols are asked for again, milliseconds of performance.now(); Infinity: the worker could not read them. */
  symbolsBrokenUntil: number;
  /** The worker has named addresses of it, so that it is known to take no harm. */
  symbolsRead: boolean;
  /** Made for the first frame: of most files that come and go there is none. */
  mappings: Map<Segment | undefined, Mapping> | undefined;
}

/** True once its content is known, as far as it can be. */
export const isRead = ({ state }: Executable): boolean =>
  state === 'ready' || state === 'no-table' || state === 'not-elf';

/** Paths to open it by again, if it is still the same: the one that worked first, then below our own root. */
export const placesOf = ({ openedPath, path }: Executable): string[] =>
  [...new Set([openedPath, path])].filter((place) => place.startsWith('/'));

export function newExecutable(key: FileKey, path: string, identity: FileIdentity): Executable {
  return {
    key,
    path,
    name: path.slice(path.lastIndexOf('/') + 1),
    identity,
    size: Number(identity.size),
    state: 'opening',
    reason: '',
    fileId: toFileId(''),
    gnuBuildId: '',
    goBuildId: '',
    goCode: undefined,
    runtime: undefined,
    segments: [],
    openedPath: '',
    copiedFrom: undefined,
    bytes: undefined,
    failures: 0,
    builtAt: Number.NEGATIVE_INFINITY,
    symbolsBrokenUntil: 0,
    symbolsRead: false,
    mappings: undefined,
  };
}

export interface FilePlace {
  mapping: Mapping;
  /** ELF virtual address. */
  address: number;
  /** Go's compiler made the code there. */
  isGo: boolean;
}

/**
 * ELF virtual address and mapping of an offset in the file; where no segment holds the offset, or the file is no
 * ELF file, the offset itself. Undefined until the file is read.
 */
export function locateOffset(executable: Executable, offset: number): FilePlace | undefined {
  if (executable.segments.length === 0 && executable.state !== 'not-elf') return undefined;
  const segment = findSegment(executable.segments, offset);
  executable.mappings ??= new Map();
  let mapping = executable.mappings.get(segment);
  if (!mapping) {
    mapping = makeMapping(executable, segment);
    executable.mappings.set(segment, mapping);
  }
  const address = segment ? segment.vaddr + (offset - segment.offset) : offset;
  const { goCode } = executable;
  const isGo = goCode !== undefined && address >= goCode.start && address < goCode.end;
  return { mapping, address, isGo };
}

/** PT_LOAD segments, copied: structured clone adds hidden properties. */
export const loadedSegments = (segments: readonly Segment[]): Segment[] =>
  segments
    .filter(({ type }) => type === PT_LOAD)
    .map(({ type, flags, offset, vaddr, filesz, memsz, align }) => {
      return { type, flags, offset, vaddr, filesz, memsz, align };
    });

/** Two segments can hold the same page of the file: that with code is meant. */
function findSegment(segments: readonly Segment[], offset: number): Segment | undefined {
  let found: Segment | undefined;
  for (let i = 0; i < segments.length; i++) {
    const s = segments[i]!;
    if (s.type !== PT_LOAD || offset < s.offset || offset >= s.offset + s.filesz) continue;
    if (s.flags & PF_X) return s;
    found ??= s;
  }
  return found;
}

function makeMapping(
  { path, fileId, gnuBuildId, goBuildId }: Executable,
  segment: Segment | undefined,
): Mapping {
  return {
    ...emptyMapping(),
    filename: path,
    fileId,
    gnuBuildId,
    goBuildId,
    memoryStart: BigInt(segment?.vaddr ?? 0),
    memoryLimit: BigInt(segment ? segment.vaddr + segment.memsz : 0),
    fileOffset: BigInt(segment?.offset ?? 0),
  };
}
