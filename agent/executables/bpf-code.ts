/**
 * Where the machine code of BPF programs lies. kallsyms knows their names, but no sizes, and it is read now and then
 * only: a program that was loaded since may lie behind another one, or where another one was.
 */
import { countBelow } from '../../common/base/search.ts';
import type { Native } from '../tracer/native.ts';

export interface BpfFunction {
  start: bigint;
  end: bigint;
  /** Of its program; later ones have higher IDs. */
  id: number;
}

const MAX_PROGRAMS = 16_384;

export class BpfCode {
  readonly #native: Pick<Native, 'nextBpfProgram' | 'bpfProgramCode'>;
  /** By address; none overlap. */
  #functions: BpfFunction[] = [];
  #newestId = 0;

  constructor(native: Pick<Native, 'nextBpfProgram' | 'bpfProgramCode'>) {
    this.#native = native;
  }

  /** Forgets programs, most of all those that are gone. */
  reset(): void {
    this.#functions = [];
    this.#newestId = 0;
  }

  /** The highest ID of all programs by now; undefined where the kernel does not tell (without CAP_SYS_ADMIN). */
  update(): number | undefined {
    const added: BpfFunction[] = [];
    for (let n = 0; n < MAX_PROGRAMS; n++) {
      const id = this.#native.nextBpfProgram(this.#newestId);
      if (id < 0) return undefined;
      if (id === 0) break;
      this.#newestId = id;
      added.push(...this.#read(id));
    }
    if (added.length > 0) this.#insert(added);
    return this.#newestId;
  }

  /** The function at an address, as of the last update. */
  find(address: bigint): BpfFunction | undefined {
    const functions = this.#functions;
    const last = functions[countBelow(functions.length, (i) => functions[i]!.start <= address) - 1];
    return last && address < last.end ? last : undefined;
  }

  #read(id: number): BpfFunction[] {
    const code = this.#native.bpfProgramCode(id) ?? new BigUint64Array(0);
    const functions: BpfFunction[] = [];
    for (let i = 0; i + 1 < code.length; i += 2) {
      // 0: not shown, or interpreted
      if (code[i] !== 0n) functions.push({ start: code[i]!, end: code[i]! + code[i + 1]!, id });
    }
    return functions;
  }

  /** Programs that lay where the new ones do are gone. */
  #insert(added: BpfFunction[]): void {
    const all = [...this.#functions, ...added].sort(byStart);
    const kept: BpfFunction[] = [];
    for (const next of all) {
      const last = kept.at(-1);
      if (!last || last.end <= next.start) kept.push(next);
      else if (next.id >= last.id) kept[kept.length - 1] = next;
    }
    this.#functions = kept;
  }
}

function byStart(a: BpfFunction, b: BpfFunction): number {
  if (a.start === b.start) return a.id - b.id;
  return a.start < b.start ? -1 : 1;
}
