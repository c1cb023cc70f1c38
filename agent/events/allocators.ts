/**
 * Functions of allocators, by what their arguments say. Other names of the same are aliases of them, or call them: what is
 * allocated within an allocation is not counted again.
 */
import type { ProbeProgram } from './probe-site.ts';
import { findProbedFile } from './probed-file.ts';

/** Programs of allocations.bpf.o at the entry; all but those that free return an address, and have one at their return, too. */
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
  free_sized: 'on_free',
  free_aligned_sized: 'on_free',
} as const;
/** jemalloc's own, which Rust's crate calls: with flags behind what they have in common with C's. */
const OF_JEMALLOC = {
  mallocx: 'on_malloc',
  rallocx: 'on_realloc',
  dallocx: 'on_free',
  sdallocx: 'on_free',
} as const;
/** mimalloc's own, with the alignment behind the size; Rust's crate calls them. */
const OF_MIMALLOC = {
  mi_zalloc: 'on_malloc',
  mi_malloc_aligned: 'on_malloc',
  mi_zalloc_aligned: 'on_malloc',
  mi_calloc_aligned: 'on_calloc',
  mi_realloc_aligned: 'on_realloc',
  mi_new: 'on_malloc',
  mi_new_aligned: 'on_malloc',
  mi_free_size: 'on_free',
  mi_free_size_aligned: 'on_free',
  mi_free_aligned: 'on_free',
} as const;
/** CPython's, whose functions have a context in front of what C's have; python-allocator.ts finds them, by no name of a symbol. */
const OF_CPYTHON = {
  'cpython malloc': 'on_memalign',
  'cpython calloc': 'on_context_calloc',
  'cpython realloc': 'on_context_realloc',
  'cpython free': 'on_context_free',
} as const;
const AT_RETURN = 'on_allocated';
/** Go's, all of whose allocations come by it; its collector frees what it finds, without a name. */
export const GO_ALLOCATOR = 'runtime.mallocgc';
/** Of jemalloc as it is often built into programs, the same by Rust's crate, mimalloc, and tcmalloc. */
const PREFIXES = ['', 'je_', '_rjem_', 'mi_', 'tc_'];

type ProgramAtEntry = (typeof AT_ENTRY)[keyof typeof AT_ENTRY] | (typeof OF_CPYTHON)[keyof typeof OF_CPYTHON];
const FREEING: ReadonlySet<ProgramAtEntry> = new Set(['on_free', 'on_context_free']);

const probesOf = (program: ProgramAtEntry): ProbeProgram[] => [
  { program, isAtReturn: false },
  ...(FREEING.has(program) ? [] : [{ program: AT_RETURN, isAtReturn: true }]),
];

/** operator new and delete, of one and of several, with an alignment and without exceptions: the Itanium C++ ABI, section 5.1.5. */
const OPERATOR =
  /^_Z(?:(n[wa])m(?:St11align_val_t)?(?:RKSt9nothrow_t)?|d[la]Pvm?(?:St11align_val_t)?(?:RKSt9nothrow_t)?)$/;

/** Those of C++ call malloc() where the allocator has none of its own. */
export const isOperator = (name: string): boolean => OPERATOR.test(name);

const PROBES: ReadonlyMap<string, readonly ProbeProgram[]> = new Map([
  [GO_ALLOCATOR, [{ program: 'on_mallocgc', isAtReturn: false }]],
  ...PREFIXES.flatMap((prefix) =>
    Object.entries({ ...AT_ENTRY, ...OF_JEMALLOC }).map(([name, program]): [string, ProbeProgram[]] => [
      `${prefix}${name}`,
      probesOf(program),
    ]),
  ),
  ...Object.entries({ ...OF_MIMALLOC, ...OF_CPYTHON }).map(([name, program]): [string, ProbeProgram[]] => [
    name,
    probesOf(program),
  ]),
]);

/** What is set at a function of that name; empty: it is none of an allocator. */
export function probesOfAllocator(name: string): readonly ProbeProgram[] {
  const operator = OPERATOR.exec(name);
  return operator ? probesOf(operator[1] ? 'on_malloc' : 'on_free') : (PROBES.get(name) ?? []);
}

export const ALLOCATOR_PROGRAMS = [...new Set([...PROBES.values()].flat().map(({ program }) => program))];

const LIBRARIES = [
  'libc',
  'libjemalloc',
  'libtcmalloc',
  'libtcmalloc_minimal',
  'libmimalloc',
  'ld-musl-x86_64',
  'ld-musl-aarch64',
];

/** Those of the system. */
export const allocatorLibraries = (): string[] =>
  LIBRARIES.flatMap((name) => {
    try {
      return [findProbedFile(name)];
    } catch {
      return [];
    }
  });
