/**
 * Functions of allocators, by what their arguments say. Other names of the same are aliases of them, or call them: what is
 * allocated within an allocation is not counted again.
 */
import type { ProbeProgram } from './probe-site.ts';
import { findProbedFile } from './probed-file.ts';

/** Programs of allocations.bpf.o at the entry; those that return an address have one at their return, too. */
const AT_ENTRY = {
  malloc: 'on_malloc',
  calloc: 'on_calloc',
  realloc: 'on_realloc',
  memalign: 'on_memalign',
  aligned_alloc: 'on_memalign',
  posix_memalign: 'on_posix_memalign',
  valloc: 'on_malloc',
  pvalloc: 'on_malloc',
  free: 'on_free',
} as const;
const AT_RETURN = 'on_allocated';
/** Go's, all of whose allocations come by it; its collector frees what it finds, without a name. */
export const GO_ALLOCATOR = 'runtime.mallocgc';
/** Of jemalloc as it is often built into programs, the same by Rust's crate, mimalloc, and tcmalloc. */
const PREFIXES = ['', 'je_', '_rjem_', 'mi_', 'tc_'];

const PROBES: ReadonlyMap<string, readonly ProbeProgram[]> = new Map([
  [GO_ALLOCATOR, [{ program: 'on_mallocgc', isAtReturn: false }]],
  ...PREFIXES.flatMap((prefix) =>
    Object.entries(AT_ENTRY).map(([name, program]): [string, ProbeProgram[]] => {
      const entry = { program, isAtReturn: false };
      return [
        `${prefix}${name}`,
        name === 'free' ? [entry] : [entry, { program: AT_RETURN, isAtReturn: true }],
      ];
    }),
  ),
]);

/** What is set at a function of that name; empty: it is none of an allocator. */
export const probesOfAllocator = (name: string): readonly ProbeProgram[] => PROBES.get(name) ?? [];

export const ALLOCATOR_PROGRAMS = [...new Set([...PROBES.values()].flat().map(({ program }) => program))];

const LIBRARIES = ['libc', 'libjemalloc', 'libtcmalloc', 'libtcmalloc_minimal', 'libmimalloc'];

/** Those of the system. */
export const allocatorLibraries = (): string[] =>
  LIBRARIES.flatMap((name) => {
    try {
      return [findProbedFile(name)];
    } catch {
      return [];
    }
  });
