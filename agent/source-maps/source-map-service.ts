/** What the source map worker does: reads scripts and their maps in the root of the process that runs them. */
import { closeSync, readFileSync, readSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { fileOpener, type ProcessFile } from '../files/file-opener.ts';
import { type FileOwner, identityOf, type Reader, RootDirectory } from '../files/root-directory.ts';
import { createBootClock } from '../processes/boot-clock.ts';
import { parseStat } from '../processes/proc-files.ts';
import {
  findMapUrl,
  type OriginalPlace,
  pathOfMap,
  readDataUrl,
  ScriptMap,
  type ScriptPlace,
} from './script-map.ts';

export interface SourceMapRequest {
  pid: number;
  /** Another one for each program that runs under the PID. */
  execution: number;
  /** Absolute path of the script, as the process sees it. */
  file: string;
  places: ScriptPlace[];
}

/** Why a script has no map. */
export type NoMap =
  /** There is none, or no such script. */
  | 'none'
  /** The process has ended. */
  | 'gone'
  /** The script or its map changed after the process had started. */
  | 'changed'
  /**
   * No regular file, outside of the process's root, or not readable for the process; a map that somebody else than root
   * and the script's owner can change.
   */
  | 'refused'
  | 'too-large'
  | 'malformed';

export type SourceMapAnswer =
  /** By place, undefined where the map says nothing of it. */
  { kind: 'places'; places: (OriginalPlace | undefined)[] } | { kind: NoMap };

const MAX_SCRIPT_BYTES = 32 << 20;
const MAX_MAP_BYTES = 64 << 20;
/** Of maps that stay; one that is larger has the room for itself. */
const MAX_KEPT_BYTES = 12 << 20;
const MAX_SCRIPTS = 1024;
const TICK_NS = 10_000_000n;
const NS_PER_MS = 1_000_000n;
/** A file may have been written right before the process began. */
const START_STEP_MS = 1000;

class NoMapError extends Error {
  readonly kind: NoMap;

  constructor(kind: NoMap) {
    super(kind);
    this.kind = kind;
  }
}

interface TextFile {
  text: string;
  /** Same for the same content. */
  identity: string;
  owner: FileOwner | undefined;
}

/** A process's root, and what may be read there. */
interface Place {
  root: RootDirectory;
  reader: Reader;
  startMs: number;
}

/** What was found for a script: the key of its map, which may have been dropped since, or why there is none. */
type KnownScript = { map: string } | { kind: NoMap };

export class SourceMapService {
  readonly #proc: string;
  readonly #clock: ReturnType<typeof createBootClock>;
  /** By execution and path. */
  readonly #scripts = new LRUCache<string, KnownScript>({ max: MAX_SCRIPTS });
  /** By content: processes often run the same scripts. */
  readonly #maps = new LRUCache<string, ScriptMap>({
    max: MAX_SCRIPTS,
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }) => Math.min(bytes, MAX_KEPT_BYTES),
  });

  constructor(proc = '/proc') {
    this.#proc = proc;
    this.#clock = createBootClock(proc);
  }

  resolve({ pid, execution, file, places }: SourceMapRequest): SourceMapAnswer {
    const key = `${execution} ${file}`;
    const known = this.#scripts.get(key);
    if (known && !('map' in known)) return known;
    const kept = known && this.#maps.get(known.map);
    if (kept) return answer(kept, places);
    const opened = this.#open(pid, file);
    this.#scripts.set(key, 'kind' in opened ? opened : { map: opened.key });
    return 'kind' in opened ? opened : answer(opened.map, places);
  }

  #open(pid: number, file: string): { map: ScriptMap; key: string } | { kind: NoMap } {
    let place: Place | undefined;
    try {
      place = this.#placeOf(pid);
      return this.#read(place, file);
    } catch (error) {
      return { kind: error instanceof NoMapError ? error.kind : 'malformed' };
    } finally {
      place?.root.close();
    }
  }

  #placeOf(pid: number): Place {
    try {
      const stat = parseStat(this.#readOf(pid, 'stat'));
      const reader = readerOf(this.#readOf(pid, 'status'));
      const root = new RootDirectory(fileOpener().openOfProcess(this.#proc, pid, 'root'));
      const startNs = this.#clock.toUnixNanos((stat?.startTicks ?? 0n) * TICK_NS);
      return { root, reader, startMs: Number(startNs / NS_PER_MS) };
    } catch {
      throw new NoMapError('gone');
    }
  }

  #readOf(pid: number, which: ProcessFile): string {
    const fd = fileOpener().openOfProcess(this.#proc, pid, which);
    try {
      return readFileSync(fd, 'utf8');
    } finally {
      closeSync(fd);
    }
  }

  #read(place: Place, file: string): { map: ScriptMap; key: string } {
    // what runs is its own, whoever wrote it
    const script = readText(place, file, undefined, MAX_SCRIPT_BYTES);
    const url = findMapUrl(script.text);
    const held = url === undefined ? undefined : readDataUrl(url);
    const path = url === undefined ? `${file}.map` : pathOfMap(url, file);
    if (held !== undefined) return this.#parse(script, { text: held, identity: '', owner: undefined }, file);
    if (path === undefined) throw new NoMapError('none');
    return this.#parse(script, readText(place, path, script.owner, MAX_MAP_BYTES), path);
  }

  #parse(script: TextFile, map: TextFile, path: string): { map: ScriptMap; key: string } {
    const key = `${script.identity} ${map.identity} ${path}`;
    const known = this.#maps.get(key);
    if (known) return { map: known, key };
    const parsed = new ScriptMap(script.text, map.text, path);
    this.#maps.set(key, parsed);
    return { map: parsed, key };
  }
}

const answer = (map: ScriptMap, places: ScriptPlace[]): SourceMapAnswer => ({
  kind: 'places',
  places: places.map((place) => map.originalOf(place)),
});

/** With the rights that it has: who owns /proc/PID is root, where the process may not be dumped. */
function readerOf(status: string): Reader {
  const [, uid] = /^Uid:\t\d+\t(\d+)\t/m.exec(status) ?? [];
  const [, gid] = /^Gid:\t\d+\t(\d+)\t/m.exec(status) ?? [];
  if (uid === undefined || gid === undefined) throw new NoMapError('gone');
  return { uid: BigInt(uid), gid: BigInt(gid) };
}

function readText(
  { root, reader, startMs }: Place,
  path: string,
  owner: FileOwner | undefined,
  maxBytes: number,
): TextFile {
  const opened = root.openRegular(path, owner, reader);
  if (typeof opened === 'string') throw new NoMapError(opened === 'missing' ? 'none' : 'refused');
  try {
    const { size, ctimeNs } = opened.stats;
    if (size > maxBytes) throw new NoMapError('too-large');
    if (Number(ctimeNs / NS_PER_MS) > startMs + START_STEP_MS) throw new NoMapError('changed');
    const text = readAll(opened.fd, Number(size));
    return { text, identity: identityOf(opened.stats), owner: opened.stats };
  } finally {
    closeSync(opened.fd);
  }
}

function readAll(fd: number, size: number): string {
  const bytes = Buffer.alloc(size);
  let done = 0;
  for (let count = -1; count !== 0 && done < size; done += count)
    count = readSync(fd, bytes, done, size - done, done);
  return bytes.toString('utf8', 0, done);
}
