import { type FileId, toFileId } from '../../base/brand.ts';

/** FNV-1a, 128 bits: offset basis and prime of draft-eastlake-fnv-17, section 5. */
const OFFSET_BASIS = 0x6c62272e07bb014262b821756295c58dn;
const PRIME = (1n << 88n) + 0x13bn;
const MASK = (1n << 128n) - 1n;

/**
 * File ID of the kernel, or of a module, whose image no file on this machine needs to hold: a hash over the hex
 * digits of its GNU build ID, as OpenTelemetry's profiler computes it. '' where the build ID is shorter than
 * 16 digits: too little to tell two kernels apart.
 */
export function kernelFileId(gnuBuildId: string): FileId {
  if (gnuBuildId.length < 16) return toFileId('');
  let hash = OFFSET_BASIS;
  for (let i = 0; i < gnuBuildId.length; i++) {
    hash = ((hash ^ BigInt(gnuBuildId.charCodeAt(i) & 0xff)) * PRIME) & MASK;
  }
  return toFileId(hash.toString(16).padStart(32, '0'));
}
