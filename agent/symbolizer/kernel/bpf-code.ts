/**
 * Where the machine code of BPF programs lies, and its names. kallsyms knows those too, but no sizes, and to read it
 * again for each program that is loaded would cost 0.1 s of CPU time.
 */
import { countBelow } from '../../../common/base/search.ts';
import type { Native } from '../../base/native.ts';

export interface BpfFunction {
  start: bigint;
  end: bigint;
  /** As in kallsyms; '' where it was gone when it was asked for. */
  name: string | undefined;
  /** ID of the program; later ones have higher IDs. */
  id: number;
}

const MAX_PROGRAMS = 16_384;

export class BpfCode {
  readonly #native: Pick<Native, 'nextBpfProgram' | 'bpfProgramFunctions'>;
  /** By address; none overlap. */
  #functions: BpfFunction[] = [];
  #newestId = 0;

  constructor(native: Pick<Native, 'nextBpfProgram' | 'bpfProgramFunctions'>) {
    this.#native = native;
  }

  /** Forgets programs, most of all those that are gone. */
  reset(): void {
    this.#functions = [];
    this.#newestId = 0;
  }

  /** The highest ID of all programs by now; undefined where the kernel does not say (without CAP_SYS_ADMIN). */
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

  /** The function at an address, as of the last update, with its name. */
  find(address: bigint): (BpfFunction & { name: string }) | undefined {
    const functions = this.#functions;
    const last = functions[countBelow(functions.length, (i) => functions[i]!.start <= address) - 1];
    if (!last || address >= last.end) return undefined;
    last.name ??= this.#nameOf(last);
    return last as BpfFunction & { name: string };
  }

  #nameOf({ id, start }: BpfFunction): string {
    const functions = this.#native.bpfProgramFunctions(id, true);
    return functions?.find((f) => f.start === start)?.name ?? '';
  }

  #read(id: number): BpfFunction[] {
    const functions = this.#native.bpfProgramFunctions(id, false) ?? [];
    return functions
      .filter(({ start }) => start !== 0n)
      .map(({ start, bytes }) => ({ start, end: start + BigInt(bytes), name: undefined, id }));
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
