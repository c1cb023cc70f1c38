/**
 * A script with its source map: from places in what runs to places in what was written. Reads no files. Both texts
 * come from a foreign program; the format is ECMA-426.
 */
import { dirname, posix } from 'node:path';
import { AnyMap, decodedMappings, type SourceMapInput } from '@jridgewell/trace-mapping';
import { NO_NAME, PackedMappings } from './packed-mappings.ts';

/** Lines and columns count from 1, 0 where unknown. */
export interface ScriptPlace {
  /** As the runtime has it, '<anonymous>' where it has none. */
  name: string;
  line: number;
  column: number;
  /** Where the function's parameters begin. */
  startLine: number;
  startColumn: number;
}

export interface OriginalPlace {
  name: string;
  file: string;
  line: number;
  column: number;
  /** First line of the function, 0 if unknown. */
  startLine: number;
}

const URL_COMMENT =
  /(?:^|\n)[ \t]*(?:\/\/[#@][ \t]*sourceMappingURL=([^\s'"]+)|\/\*[#@][ \t]*sourceMappingURL=([^\s'"*]+)[ \t]*\*\/)[ \t]*$/;
const COMMENT_START = 'sourceMappingURL=';
const DATA_URL = /^data:application\/json(?:;charset=[\w-]+)?(;base64)?,/i;
const MAX_NAME_CHARS = 1024;
const MAX_FILE_CHARS = 4096;
/** How much of a line is looked at for a function's name before its parameters. */
const NAME_REACH = 256;
/** What the runtime writes before the name of an accessor. */
const ACCESSOR = /^[gs]et (?=.)/;
/** What a line, a source or a name takes beside what its characters do. */
const TEXT_BYTES = 64;

/** The last comment of a script that says where its map is. */
export function findMapUrl(script: string): string | undefined {
  const at = script.lastIndexOf(COMMENT_START);
  if (at < 0) return undefined;
  const end = script.indexOf('\n', at);
  const start = script.lastIndexOf('\n', at);
  const line = script.slice(Math.max(start, 0), end < 0 ? undefined : end).trimEnd();
  const [, ofLine, ofBlock] = URL_COMMENT.exec(line) ?? [];
  return ofLine ?? ofBlock;
}

/** What the URL itself holds; undefined where it leads to a file. Throws where it is damaged. */
export function readDataUrl(url: string): string | undefined {
  const match = DATA_URL.exec(url);
  if (!match) return undefined;
  const data = url.slice(match[0].length);
  return match[1] ? Buffer.from(data, 'base64').toString('utf8') : decodeURIComponent(data);
}

/** Path of the map beside its script; undefined for what is not a file, such as https:. */
export function pathOfMap(url: string, scriptPath: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]+:/i.test(url) && !url.startsWith('file://')) return undefined;
  const bare = url.replace(/^file:\/\//, '').replace(/[?#].*$/, '');
  try {
    return posix.resolve(dirname(scriptPath), decodeURIComponent(bare));
  } catch {
    return undefined;
  }
}

export class ScriptMap {
  /** Roughly what it takes. */
  readonly bytes: number;
  readonly #mappings: PackedMappings;
  /** URLs or paths, of those of the map that are texts. */
  readonly #sources: readonly unknown[];
  readonly #names: readonly unknown[];
  readonly #lines: string[];

  /** `mapPath`: what the map's sources are relative to. Throws where the map is none. */
  constructor(script: string, map: string, mapPath: string) {
    // some tools prefix a line that keeps browsers from running it
    const parsed = JSON.parse(map.startsWith(")]}'") ? map.slice(map.indexOf('\n')) : map) as SourceMapInput;
    if (typeof parsed !== 'object' || parsed === null) throw new TypeError('no source map');
    const decoded = new AnyMap(withoutContent(parsed), mapPath);
    this.#mappings = new PackedMappings(decodedMappings(decoded));
    this.#sources = decoded.resolvedSources;
    this.#names = decoded.names;
    this.#lines = script.split('\n');
    const texts = this.#lines.length + this.#sources.length + this.#names.length;
    this.bytes = script.length + this.#mappings.byteLength + texts * TEXT_BYTES;
  }

  /** Undefined where the map says nothing of the place. */
  originalOf({ name, line, column, startLine, startColumn }: ScriptPlace): OriginalPlace | undefined {
    const at = this.#find(line, column);
    if (!at) return undefined;
    const start = startColumn > 0 ? this.#find(startLine, startColumn) : undefined;
    return {
      ...at,
      name: this.#nameOf(name, startLine, startColumn) ?? name,
      startLine: start?.file === at.file ? start.line : 0,
    };
  }

  #find(line: number, column: number): { file: string; line: number; column: number } | undefined {
    if (line < 1) return undefined;
    const found = this.#mappings.find(line - 1, Math.max(column - 1, 0));
    const source = found && this.#sources[found.source];
    if (!found || typeof source !== 'string' || source === '') return undefined;
    const file = source.replace(/^file:\/\//, '').slice(0, MAX_FILE_CHARS);
    return { file, line: found.sourceLine + 1, column: found.sourceColumn + 1 };
  }

  /** The name that stands before a function's parameters, or in `name = (…) =>`, where the map has another one. */
  #nameOf(name: string, startLine: number, startColumn: number): string | undefined {
    const accessor = ACCESSOR.exec(name)?.[0] ?? '';
    const text = this.#lines[startLine - 1]?.slice(
      Math.max(startColumn - 1 - NAME_REACH, 0),
      startColumn - 1,
    );
    const before =
      text === undefined ? undefined : /(#?[\w$\u0080-\uffff]+)\s*(?:[=:]\s*(?:async\s*)?)?$/.exec(text);
    if (before?.[1] !== name.slice(accessor.length) || text === undefined) return undefined;
    const column = startColumn - 1 - (text.length - before.index);
    const segment = this.#mappings.find(startLine - 1, column);
    const original =
      segment?.column === column && segment.name !== NO_NAME ? this.#names[segment.name] : undefined;
    if (typeof original !== 'string' || original === '') return undefined;
    return (accessor + original).slice(0, MAX_NAME_CHARS);
  }
}

/** The sources' own texts are the largest part of a map, and are not shown. */
function withoutContent(map: SourceMapInput): SourceMapInput {
  if (typeof map === 'object') delete (map as { sourcesContent?: unknown }).sourcesContent;
  return map;
}
