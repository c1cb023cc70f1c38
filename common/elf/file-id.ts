import { createHash } from 'node:crypto';
import { type FileId, toFileId } from '../base/brand.ts';
import type { ByteSource } from '../base/byte-source.ts';

const EDGE_BYTES = 4096;

/**
 * The file ID that OpenTelemetry's profilers share: the first 16 bytes of SHA-256 over the first 4,096 bytes, the
 * last 4,096 bytes (overlapping in small files) and the length as a big-endian u64.
 */
export function computeFileId(source: ByteSource): FileId {
  const edge = Math.min(EDGE_BYTES, source.size);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(source.size));
  const hash = createHash('sha256')
    .update(source.read(0, edge))
    .update(source.read(source.size - edge, edge))
    .update(length);
  return toFileId(hash.digest('hex').slice(0, 32));
}
