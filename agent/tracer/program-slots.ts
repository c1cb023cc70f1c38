/** Programs that others jump to (BPF_MAP_TYPE_PROG_ARRAY), and that are replaced while they do. */
import type { Native, NativeBpfObject } from '../base/native.ts';

/** The object, loaded; closed again where the kernel does not take it. Rejects as the kernel says. */
export async function loaded(object: NativeBpfObject): Promise<NativeBpfObject> {
  try {
    await object.load();
    return object;
  } catch (error) {
    object.close();
    throw error;
  }
}

/** From now on a jump to that slot leads to the program. */
export function putInSlot(
  native: Pick<Native, 'mapUpdate'>,
  arrayFd: number,
  slot: number,
  programFd: number,
): void {
  const [key, program] = [Buffer.alloc(4), Buffer.alloc(4)];
  key.writeUInt32LE(slot);
  program.writeUInt32LE(programFd);
  native.mapUpdate(arrayFd, key, program, 0);
}
