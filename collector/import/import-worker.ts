/** Reads one file of a stranger away from the main loop and its memory, then ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { readProfile } from '../../common/profile/formats.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { type Placement, placeProfile } from './place.ts';

export interface ImportFile {
  fileName: string;
  bytes: Uint8Array;
  placement: Placement;
}

export type ImportReply = { profile: Profile } | { error: string };

const MAX_UNPACKED_BYTES = 256 * 2 ** 20;

function read({ fileName, bytes, placement }: ImportFile): ImportReply {
  try {
    const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
    const profile = readProfile(fileName, isGzip ? unpack(fileName, bytes) : bytes);
    placeProfile(profile, placement);
    return { profile };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** Here and not in the readers, which take what a person's own command gives them. */
function unpack(fileName: string, bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'ERR_BUFFER_TOO_LARGE' ? `it unpacks to more than ${MAX_UNPACKED_BYTES} bytes` : message;
    throw new Error(`${fileName} can't be unpacked: ${why}`);
  }
}

parentPort?.postMessage(read(workerData as ImportFile));
