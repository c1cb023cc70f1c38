/**
 * A portable PDB: from an offset in a method's IL to the line that it was compiled from. Source: dotnet/runtime,
 * docs/design/specs/PortablePdb-Metadata.md. It comes from a foreign file: what contradicts itself throws
 * {@link MalformedMetadata} or {@link OutOfBounds}.
 */
import { bufferSource } from '../base/byte-source.ts';
import { compressed, MalformedMetadata, Metadata, Table } from './metadata.ts';
import { readerOf } from './pe.ts';

export interface SourcePlace {
  /** As the compiler was given it, which may have mapped it: `/_/src/Shop.cs`. */
  file: string;
  line: number;
  column: number;
  /** First line of the method. */
  startLine: number;
}

interface Point {
  ilOffset: number;
  document: number;
  /** 0: the compiler's own code. */
  line: number;
  column: number;
}

const ID_BYTES = 20;
const POINTS = 1;
const DOCUMENT = 0;
const MAX_POINTS_BYTES = 4 << 20;
const MAX_NAME_BYTES = 4096;
const MAX_NAME_PARTS = 128;
const MAX_LINE = 0x1fff_ffff;

export class PortablePdb {
  /** As the assembly has it that it belongs to. */
  readonly id: Uint8Array;
  readonly #metadata: Metadata;

  constructor(bytes: Uint8Array) {
    this.#metadata = new Metadata(readerOf(bufferSource(bytes)));
    const id = this.#metadata.stream('#Pdb', ID_BYTES);
    if (id?.byteLength !== ID_BYTES) throw new MalformedMetadata('no PDB');
    this.id = new Uint8Array(id.buffer, id.byteOffset, ID_BYTES);
  }

  /** Undefined where nothing is said of the method, or of that part of it. `row`: of the method, from 1. */
  find(row: number, ilOffset: number): SourcePlace | undefined {
    if (row > this.#metadata.rows(Table.methodDebugInformation)) return undefined;
    const points = [...this.#points(row)].filter(({ line }) => line > 0);
    const found = points.findLast((point) => point.ilOffset <= ilOffset);
    if (!found) return undefined;
    const { document, line, column } = found;
    const startLine = points.reduce(
      (first, point) => (point.document === document ? Math.min(first, point.line) : first),
      line,
    );
    return { file: this.#documentName(document), line, column, startLine };
  }

  *#points(row: number): Generator<Point> {
    const blob = this.#metadata.value(Table.methodDebugInformation, row, POINTS);
    if (blob === 0) return;
    const numbers = new Numbers(this.#metadata.blob(blob, MAX_POINTS_BYTES));
    numbers.unsigned(); // the locals' signature
    let document = this.#metadata.value(Table.methodDebugInformation, row, DOCUMENT) || numbers.unsigned();
    let [ilOffset, line, column] = [0, 0, 0];
    for (let isFirst = true; numbers.isLeft; isFirst = false) {
      const step = numbers.unsigned();
      if (step === 0 && !isFirst) {
        document = numbers.unsigned();
        continue;
      }
      ilOffset += step;
      const lines = numbers.unsigned();
      const columns = lines === 0 ? numbers.unsigned() : numbers.signed();
      if (lines === 0 && columns === 0) {
        yield { ilOffset, document, line: 0, column: 0 };
        continue;
      }
      line += line === 0 ? numbers.unsigned() : numbers.signed();
      column += column === 0 ? numbers.unsigned() : numbers.signed();
      if (!(line > 0 && line <= MAX_LINE)) throw new MalformedMetadata(`line ${line}`);
      yield { ilOffset, document, line, column };
    }
  }

  /** A separator, and blobs of the parts between which it stands. */
  #documentName(row: number): string {
    const name = this.#metadata.blob(this.#metadata.value(Table.document, row, 0), MAX_NAME_BYTES);
    const numbers = new Numbers(name);
    const separator = numbers.byte();
    const parts: string[] = [];
    while (numbers.isLeft && parts.length < MAX_NAME_PARTS) {
      const part = numbers.unsigned();
      parts.push(part === 0 ? '' : Buffer.from(this.#metadata.blob(part, MAX_NAME_BYTES)).toString('utf8'));
    }
    return parts.join(separator === 0 ? '' : String.fromCharCode(separator)).slice(0, MAX_NAME_BYTES);
  }
}

/** Compressed numbers, one after the other. */
class Numbers {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isLeft(): boolean {
    return this.#at < this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.#at++] ?? 0;
  }

  unsigned(): number {
    return this.#next().value;
  }

  /** The sign is in the lowest bit. */
  signed(): number {
    const { value, length } = this.#next();
    const half = value >> 1;
    if ((value & 1) === 0) return half;
    return half - (length === 1 ? 0x40 : length === 2 ? 0x2000 : 0x1000_0000);
  }

  #next(): { value: number; length: number } {
    const next = compressed(this.#bytes, this.#at);
    this.#at += next.length;
    if (this.#at > this.#bytes.length) throw new MalformedMetadata('a number behind the end');
    return next;
  }
}
