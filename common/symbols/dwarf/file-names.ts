/** Paths of the files of a line table, by the numbers that its rows and DIEs have for them. */
import type { ByteSource } from '../../base/byte-source.ts';

export interface FileList {
  compDir: string;
  directories: string[];
  names: string[];
  directoryIndices: number[];
  /** Number of the first file: 1 before DWARF 5. */
  first: number;
}

const decoder = new TextDecoder();

export class FileNames {
  readonly byteLength: number;
  readonly #read: () => FileList;
  #list: FileList | undefined;
  readonly #paths: (string | undefined)[] = [];

  /** `read` is called when the first path is asked for. */
  constructor(list: FileList | (() => FileList)) {
    if (typeof list === 'function') {
      this.#read = list;
      this.byteLength = 0;
      return;
    }
    this.#list = list;
    this.#read = () => list;
    let bytes = 0;
    for (const text of [...list.directories, ...list.names]) bytes += text.length * 2 + 24;
    this.byteLength = bytes;
  }

  /** '' if there is none of that number. */
  path(file: number): string {
    this.#list ??= this.#read();
    const { compDir, directories, names, directoryIndices, first } = this.#list;
    const i = file - first;
    const name = names[i];
    if (name === undefined) return '';
    this.#paths[i] ??= join(join(compDir, directories[directoryIndices[i]!] ?? ''), name);
    return this.#paths[i];
  }

  pack(): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.#read()));
  }

  static unpack(packed: ByteSource): FileNames {
    return new FileNames(() => JSON.parse(decoder.decode(packed.read(0, packed.size))) as FileList);
  }
}

const join = (directory: string, name: string): string =>
  name.startsWith('/') || directory === '' ? name : `${directory.replace(/\/$/, '')}/${name}`;
