/** A YAML file as keys, texts and lines: what a setting means is its table's business. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type YAMLMap,
} from 'yaml';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { type SubstitutionSources, substitute } from './substitute.ts';

export interface ConfigEntry {
  /** In the form of flags: `samples-per-second`, also where it is written samples_per_second. */
  key: string;
  line: number;
  value: ConfigValue;
}

/** Texts have what they refer to put in; null: nothing is said. */
export type ConfigValue = string | null | (string | null)[] | ConfigEntry[];

export const isMapValue = (value: ConfigValue): value is ConfigEntry[] =>
  Array.isArray(value) && value.length > 0 && typeof value[0] === 'object' && value[0] !== null;

/** Settings take a few KiB. */
export const MAX_YAML_BYTES = 1 << 20;
const MAX_DEPTH = 16;

/** Collects what is wrong, each with its file and line, so that a person sees all of it at once. */
export class Mistakes {
  readonly #path: string;
  readonly lines: string[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  add(line: number, text: string): void {
    this.lines.push(`${this.#path}:${line}: ${text}`);
  }

  /** @throws BadSetting where there are some */
  throwAny(): void {
    if (this.lines.length > 0) throw new BadSetting(this.lines.join('\n'));
  }
}

export function readYaml(text: string, mistakes: Mistakes, sources: SubstitutionSources): ConfigEntry[] {
  if (text.length > MAX_YAML_BYTES) {
    mistakes.add(1, `the file has more than ${MAX_YAML_BYTES} bytes, and is not read`);
    return [];
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  for (const error of document.errors)
    mistakes.add(lines.linePos(error.pos[0]).line, `this is not YAML: ${error.message}`);
  if (document.errors.length > 0 || document.contents === null) return [];
  const reader = new Reader(document, lines, mistakes, sources);
  if (isMap(document.contents)) return reader.entries(document.contents, 0);
  mistakes.add(
    1,
    'the file is not a list of settings: write "agent:" and below it, indented, "samples-per-second: 20"',
  );
  return [];
}

class Reader {
  readonly #document: Document;
  readonly #lines: LineCounter;
  readonly #mistakes: Mistakes;
  readonly #sources: SubstitutionSources;

  constructor(document: Document, lines: LineCounter, mistakes: Mistakes, sources: SubstitutionSources) {
    this.#document = document;
    this.#lines = lines;
    this.#mistakes = mistakes;
    this.#sources = sources;
  }

  entries(map: YAMLMap, depth: number): ConfigEntry[] {
    return map.items.map((pair: Pair) => {
      const key = pair.key as Scalar;
      const line = this.#lineOf(key);
      const name = String(key?.value ?? '').replaceAll('_', '-');
      return { key: name, line, value: this.#value(pair.value as Node | null, line, depth + 1) };
    });
  }

  #value(node: Node | null, line: number, depth: number): ConfigValue {
    const real = isAlias(node) ? (node.resolve(this.#document) ?? null) : node;
    if (real === null) return null;
    if (depth > MAX_DEPTH) {
      this.#mistakes.add(line, `more than ${MAX_DEPTH} levels are not read`);
      return null;
    }
    if (isScalar(real)) return this.#text(real);
    if (isMap(real)) return this.entries(real, depth);
    if (isSeq(real))
      return real.items.map((item) => (isScalar(item) ? this.#text(item) : String(item ?? '')));
    return null;
  }

  /** As it was written: 0x10 and 1e3 are for the setting to read. */
  #text(scalar: Scalar): string | null {
    if (scalar.value === null) return null;
    const isPlain = scalar.type === 'PLAIN';
    const written = isPlain ? (scalar.source ?? String(scalar.value)) : String(scalar.value);
    try {
      const text = substitute(written, this.#sources);
      if (text.includes('\0')) throw new Error('a value has a NUL character: no setting has one');
      return text === '' && isPlain ? null : text;
    } catch (error) {
      this.#mistakes.add(this.#lineOf(scalar), (error as Error).message);
      return null;
    }
  }

  #lineOf(node: Node | null): number {
    return this.#lines.linePos(node?.range?.[0] ?? 0).line;
  }
}
