/** What the source map worker does: reads scripts and their maps in the root of the process that runs them. */
import { readSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { type FileOwner, identityOf } from '../files/root-directory.ts';
import { type LineAnswer, type LineRequest, type NoLines, NoLinesError } from '../lines/line-request.ts';
import { NS_PER_MS, type ProcessRoot, ProcessRoots } from '../lines/process-root.ts';
import {
  findMapUrl,
  type OriginalPlace,
  pathOfMap,
  readDataUrl,
  ScriptMap,
  type ScriptPlace,
} from './script-map.ts';

export type SourceMapRequest = LineRequest<ScriptPlace>;
export type SourceMapAnswer = LineAnswer<OriginalPlace>;

const MAX_SCRIPT_BYTES = 32 << 20;
const MAX_MAP_BYTES = 64 << 20;
/** Of maps that stay; one that is larger has the room for itself. */
const MAX_KEPT_BYTES = 12 << 20;
const MAX_SCRIPTS = 1024;
/** A file may have been written right before the process began. */
const START_STEP_MS = 1000;

interface TextFile {
  text: string;
  /** Same for the same content. */
  identity: string;
  owner: FileOwner | undefined;
}

/** What was found for a script: the key of its map, which may have been dropped since, or why there is none. */
type KnownScript = { map: string } | { kind: NoLines };

export class SourceMapService {
  readonly #roots: ProcessRoots;
  /** By execution and path. */
  readonly #scripts = new LRUCache<string, KnownScript>({ max: MAX_SCRIPTS });
  /** By content: processes often run the same scripts. */
  readonly #maps = new LRUCache<string, ScriptMap>({
    max: MAX_SCRIPTS,
    maxSize: MAX_KEPT_BYTES,
    sizeCalculation: ({ bytes }) => Math.min(bytes, MAX_KEPT_BYTES),
  });

  constructor(proc = '/proc') {
    this.#roots = new ProcessRoots(proc);
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

  #open(pid: number, file: string): { map: ScriptMap; key: string } | { kind: NoLines } {
    return this.#roots.read(pid, (root) => this.#read(root, file));
  }

  #read(root: ProcessRoot, file: string): { map: ScriptMap; key: string } {
    // what runs is its own, whoever wrote it
    const script = readText(root, file, undefined, MAX_SCRIPT_BYTES);
    const url = findMapUrl(script.text);
    const held = url === undefined ? undefined : readDataUrl(url);
    const path = url === undefined ? `${file}.map` : pathOfMap(url, file);
    if (held !== undefined) return this.#parse(script, { text: held, identity: '', owner: undefined }, file);
    if (path === undefined) throw new NoLinesError('none');
    return this.#parse(script, readText(root, path, script.owner, MAX_MAP_BYTES), path);
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

function readText(root: ProcessRoot, path: string, owner: FileOwner | undefined, maxBytes: number): TextFile {
  return root.withFile(path, owner, ({ fd, stats }) => {
    if (stats.size > maxBytes) throw new NoLinesError('too-large');
    if (Number(stats.ctimeNs / NS_PER_MS) > root.startMs + START_STEP_MS) throw new NoLinesError('changed');
    return { text: readAll(fd, Number(stats.size)), identity: identityOf(stats), owner: stats };
  });
}

function readAll(fd: number, size: number): string {
  const bytes = Buffer.alloc(size);
  let done = 0;
  for (let count = -1; count !== 0 && done < size; done += count)
    count = readSync(fd, bytes, done, size - done, done);
  return bytes.toString('utf8', 0, done);
}
