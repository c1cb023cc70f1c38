/**
 * What the PDB worker does: reads assemblies in the root of the process that runs them, and the portable PDB that one holds or
 * that stands beside it. It has to be the one that the compiler made with the assembly, which its ID says.
 */
import { posix } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { type Assembly, readAssembly } from '../../common/dotnet/pe.ts';
import { PortablePdb, type SourcePlace } from '../../common/dotnet/portable-pdb.ts';
import { fdSource } from '../files/fd-source.ts';
import { type FileOwner, identityOf } from '../files/root-directory.ts';
import type { AssemblyPlace } from '../interpreters/contract.ts';
import { type LineAnswer, type LineRequest, type NoLines, NoLinesError } from '../lines/line-request.ts';
import { type ProcessRoot, ProcessRoots } from '../lines/process-root.ts';

export type PdbPlace = Omit<AssemblyPlace, 'file'>;
export type PdbRequest = LineRequest<PdbPlace>;
export type PdbAnswer = LineAnswer<SourcePlace>;

const MAX_PDB_BYTES = 64 << 20;
/** Of PDBs that stay; one that is larger has the room for itself. */
const MAX_KEPT_BYTES = 12 << 20;
const MAX_ASSEMBLIES = 1024;

interface Pdb {
  lines: PortablePdb;
  bytes: number;
  /** Of the file that it came from. */
  identity: string;
}

/** `pdb`: key of what may have been dropped since. */
type KnownAssembly = { moduleId: string; pdb: string } | { kind: NoLines };

export class PdbService {
  readonly #roots: ProcessRoots;
  /** By execution and path. */
  readonly #assemblies = new LRUCache<string, KnownAssembly>({ max: MAX_ASSEMBLIES });
  /** By the file: processes often run the same assemblies. */
  readonly #pdbs = new LRUCache<string, Pdb>({
    max: MAX_ASSEMBLIES,
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }) => Math.min(bytes, MAX_KEPT_BYTES),
  });

  constructor(proc = '/proc') {
    this.#roots = new ProcessRoots(proc);
  }

  resolve({ pid, execution, file, places }: PdbRequest): PdbAnswer {
    const key = `${execution} ${file}`;
    const known = this.#assemblies.get(key);
    if (known && 'kind' in known) return known;
    const kept = known && this.#pdbs.get(known.pdb);
    if (kept) return answer(kept.lines, known.moduleId, places);
    const opened = this.#roots.read(pid, (root) => this.#read(root, file));
    if ('kind' in opened) {
      this.#assemblies.set(key, opened);
      return opened;
    }
    const { moduleId, pdb } = opened;
    this.#assemblies.set(key, { moduleId, pdb: pdb.identity });
    return answer(pdb.lines, moduleId, places);
  }

  #read(root: ProcessRoot, file: string): { moduleId: string; pdb: Pdb } {
    // what runs is its own, whoever wrote it
    return root.withFile(file, undefined, ({ fd, stats }) => {
      const assembly = readAssembly(fdSource(fd));
      const pdb = assembly.embedded
        ? this.#embedded(assembly.embedded, identityOf(stats))
        : this.#beside(root, file, { assembly, owner: stats });
      return { moduleId: assembly.moduleId, pdb };
    });
  }

  #embedded({ compressed, size }: NonNullable<Assembly['embedded']>, identity: string): Pdb {
    if (size > MAX_PDB_BYTES) throw new NoLinesError('too-large');
    return this.#parse(identity, () => inflateRawSync(compressed, { maxOutputLength: size }));
  }

  #beside(root: ProcessRoot, file: string, of: { assembly: Assembly; owner: FileOwner }): Pdb {
    const { pdb } = of.assembly;
    if (!pdb) throw new NoLinesError('none');
    // of its path on the machine that compiled it only the name means something here
    const path = posix.join(posix.dirname(file), pdb.path.replace(/^.*[/\\]/, ''));
    const found = root.withFile(path, of.owner, ({ fd, stats }) => {
      if (stats.size > MAX_PDB_BYTES) throw new NoLinesError('too-large');
      return this.#parse(identityOf(stats), () => fdSource(fd).read(0, Number(stats.size)));
    });
    if (!Buffer.from(pdb.id).equals(found.lines.id)) throw new NoLinesError('changed');
    return found;
  }

  #parse(identity: string, read: () => Uint8Array): Pdb {
    const known = this.#pdbs.get(identity);
    if (known) return known;
    const bytes = read();
    const pdb = { lines: new PortablePdb(bytes), bytes: bytes.length, identity };
    this.#pdbs.set(identity, pdb);
    return pdb;
  }
}

function answer(pdb: PortablePdb, moduleId: string, places: readonly PdbPlace[]): PdbAnswer {
  // it runs what was at the path when it was loaded
  if (places.every((place) => place.moduleId !== moduleId)) return { kind: 'changed' };
  return {
    kind: 'places',
    places: places.map((place) =>
      place.moduleId === moduleId ? pdb.find(place.row, place.ilOffset) : undefined,
    ),
  };
}
