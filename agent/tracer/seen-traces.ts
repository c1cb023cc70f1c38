import type { Native } from './native.ts';
import { EF_SEEN_SETS, EF_SEEN_WAYS, SEEN_SET } from './records.gen.ts';

/**
 * Takes the hash of a trace out of BPF's map of traces that it need not send. BPF goes on filling the set meanwhile:
 * what it adds between reading and writing here is lost, and that trace is sent once more; what it replaced
 * stays, which is a trace that is still known.
 */
export function forgetSeen(
  native: Pick<Native, 'mapLookup' | 'mapUpdate'>,
  mapFd: number,
  hash: bigint,
): void {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(Number(hash % BigInt(EF_SEEN_SETS)));
  const set = native.mapLookup(mapFd, key, SEEN_SET.bytes);
  if (!set) return;
  let isChanged = false;
  for (let way = 0; way < EF_SEEN_WAYS; way++) {
    const at = SEEN_SET.hashes + way * 8;
    if (set.readBigUInt64LE(at) !== hash) continue;
    set.writeBigUInt64LE(0n, at);
    isChanged = true;
  }
  if (isChanged) native.mapUpdate(mapFd, key, set, 0);
}
