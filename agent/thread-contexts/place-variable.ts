/** Where the threads of a process have a variable: what the loader has left in the process's memory says so. */
import type { Pid } from '../../common/base/brand.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import type { FoundVariable } from './variable-requests.ts';

export interface VariablePlace {
  /** Number of the module, 0: `offset` is from the thread pointer. */
  module: number;
  offset: bigint;
  isMusl: boolean;
}

/** Farther from its thread pointer no thread has anything: such a number is an address. */
const MAX_STATIC = 1n << 31n;
const MAX_MODULES = 0xffffn;

/**
 * @param bias what is added to ELF virtual addresses
 * @returns undefined where the process is gone, or the loader has not come to it
 */
export async function placeVariable(
  pid: Pid,
  { variable, isMusl }: FoundVariable,
  bias: number,
  files: ForeignFiles,
): Promise<VariablePlace | undefined> {
  const session = files.newSession();
  const words = async (address: number): Promise<[bigint, bigint] | undefined> => {
    const bytes = await files.readMemory(pid, address, 16, session);
    if (typeof bytes === 'number' || bytes.length < 16) return undefined;
    return [bytes.readBigUInt64LE(0), bytes.readBigUInt64LE(8)];
  };
  const atThread = (offset: bigint): VariablePlace => ({ module: 0, offset, isMusl });
  const inModule = (module: bigint, offset: bigint): VariablePlace | undefined =>
    module > 0n && module <= MAX_MODULES ? { module: Number(module), offset, isMusl } : undefined;

  if (variable.kind === 'static') return atThread(BigInt(variable.offset));
  const slot = await words(bias + variable.slot);
  if (!slot) return undefined;
  if (variable.kind === 'module') return inModule(slot[0], BigInt(variable.offset ?? slot[1]));
  if (variable.kind === 'offset') return atThread(BigInt.asIntN(64, slot[0]));
  const argument = BigInt.asIntN(64, slot[1]);
  if (slot[0] === 0n) return undefined;
  if (argument > -MAX_STATIC && argument < MAX_STATIC) return atThread(argument);
  const dynamic = await words(Number(argument));
  return dynamic && inModule(...dynamic);
}
