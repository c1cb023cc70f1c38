/** Go 1.16 and later, of which only labels and IDs of goroutines are read: docs/interpreters/go.md. Its frames are native ones. */
import { FrameKind, GO, GoAccess, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { RuntimePlugin } from '../contract.ts';
import { detectGo, type GoBinary, type GoroutineAccess } from './detect-go.ts';

export const go: RuntimePlugin = {
  name: 'go',
  // any program may be one, and none is read early for it
  fileName: /(?!)/,
  id: Runtime.GO,
  map: RUNTIME_MAPS.GO,
  frameKind: FrameKind.GO,
  frameType: 'go',
  detect(elf) {
    const found = detectGo(elf);
    return found && { runtime: 'go', version: found.version, facts: undefined, entry: encode(found) };
  },
  /** There are no such frames. */
  nameFrame: () => 'malformed',
};

const ACCESS: Readonly<Record<GoroutineAccess['kind'], number>> = {
  threadLocal: GoAccess.THREAD_LOCAL,
  slot: GoAccess.SLOT,
  register: GoAccess.REGISTER,
};

function encode({ access, layout, setsLabels, textBias }: GoBinary): Uint8Array {
  const entry = Buffer.alloc(GO.bytes);
  if (access.kind === 'threadLocal') entry.writeBigInt64LE(BigInt(access.offset), GO.g);
  if (access.kind === 'slot') entry.writeBigInt64LE(BigInt(access.address - textBias), GO.g);
  entry.writeUInt16LE(layout.curg, GO.curg);
  entry.writeUInt16LE(setsLabels ? layout.labels : 0, GO.labels);
  entry.writeUInt16LE(layout.goid, GO.goid);
  entry.writeUInt8(ACCESS[access.kind], GO.access);
  entry.writeUInt8(Number(layout.isMap), GO.isMap);
  return entry;
}
