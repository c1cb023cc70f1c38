/** Where a JVM keeps its code, and the value of the BPF map that tells BPF. */
import type { Machine } from '../../../common/elf/elf.ts';
import { EF_HOTSPOT_HEAPS, HOTSPOT, HOTSPOT_HEAP } from '../../records/records.gen.ts';
import { UnsupportedRuntime } from '../contract.ts';
import type { RuntimeMemory } from '../runtime-memory.ts';
import type { HeapsLayout, HotspotLayout } from './layout.ts';

export interface CodeHeap {
  start: number;
  /** As much as is reserved: it does not change. */
  length: number;
  /** Address of the byte of the first segment. */
  segments: number;
  log2SegmentSize: number;
}

/** The JVM reserves at most 2 GiB; one that has more is none. */
const MAX_HEAP_BYTES = 2 ** 32;
/** 64 and 128 bytes are used. */
const MAX_LOG2_SEGMENT_SIZE = 16;

/** Undefined: the JVM has not made them yet. Throws {@link UnsupportedRuntime}, CannotRead. */
export function readCodeHeaps(memory: RuntimeMemory, layout: HeapsLayout): readonly CodeHeap[] | undefined {
  const first = memory.word(layout.variable);
  if (first === 0) return undefined;
  if (!layout.isList) return allOrNone([readHeap(memory, layout, first)]);
  const count = memory.i32(first + layout.listLength);
  const list = memory.word(first + layout.listData);
  if (count === 0 || list === 0) return undefined;
  if (count < 0 || count > EF_HOTSPOT_HEAPS) throw new UnsupportedRuntime(`HotSpot has ${count} code heaps`);
  return allOrNone(
    Array.from({ length: count }, (_, i) => readHeap(memory, layout, memory.word(list + i * 8))),
  );
}

const allOrNone = (heaps: readonly (CodeHeap | undefined)[]): readonly CodeHeap[] | undefined =>
  heaps.every((heap) => heap !== undefined) ? heaps : undefined;

function readHeap(memory: RuntimeMemory, layout: HeapsLayout, heap: number): CodeHeap | undefined {
  if (heap === 0) return undefined;
  const start = memory.word(heap + layout.memory + layout.low);
  const end = memory.word(heap + layout.memory + layout.high);
  const segments = memory.word(heap + layout.segments + layout.low);
  const log2SegmentSize = memory.i32(heap + layout.log2SegmentSize);
  if (start === 0 || end === 0 || segments === 0) return undefined;
  if (end <= start || end - start > MAX_HEAP_BYTES || end >= 2 ** 48)
    throw new UnsupportedRuntime(`HotSpot has a code heap from ${start.toString(16)} to ${end.toString(16)}`);
  if (log2SegmentSize < 3 || log2SegmentSize > MAX_LOG2_SEGMENT_SIZE)
    throw new UnsupportedRuntime(`HotSpot has segments of 2^${log2SegmentSize} bytes`);
  return { start, length: end - start, segments, log2SegmentSize };
}

/** A bytecode pointer's place below the frame pointer, words: JDK 9 put the class's mirror above it, and on arm64 a gap. */
function bcpSlot(major: number, machine: Machine): number {
  if (major < 9) return 7;
  return machine === 'aarch64' ? 9 : 8;
}

/** Of arm64: the last version in which compiled code leaves a return address below its frame when it calls C. */
const LAST_BREADCRUMBS = 21;

export function encodeHotspot(
  layout: HotspotLayout,
  heaps: readonly CodeHeap[],
  machine: Machine,
): Uint8Array {
  const { blob, method } = layout;
  const entry = Buffer.alloc(HOTSPOT.bytes);
  for (const [i, heap] of heaps.entries()) {
    const at = HOTSPOT.heaps + i * HOTSPOT_HEAP.bytes;
    entry.writeBigUInt64LE(BigInt(heap.start), at + HOTSPOT_HEAP.start);
    entry.writeBigUInt64LE(BigInt(heap.length), at + HOTSPOT_HEAP.length);
    entry.writeBigUInt64LE(BigInt(heap.segments), at + HOTSPOT_HEAP.segments);
  }
  entry.writeUInt8(heaps.length, HOTSPOT.heapCount);
  entry.writeUInt8(heaps[0]!.log2SegmentSize, HOTSPOT.segmentShift);
  entry.writeUInt8(layout.heaps.blockHeader, HOTSPOT.blockHeader);
  entry.writeUInt8(Number(blob.codeBegin.isOffset), HOTSPOT.hasCodeOffset);
  entry.writeUInt8(Number(blob.deopt.isOffset), HOTSPOT.hasDeoptOffset);
  entry.writeUInt8(Number(blob.frameComplete.isShort), HOTSPOT.hasShortComplete);
  entry.writeUInt8(bcpSlot(layout.major, machine), HOTSPOT.bcpSlot);
  const leavesBreadcrumbs = machine === 'aarch64' && layout.major <= LAST_BREADCRUMBS;
  entry.writeUInt8(Number(leavesBreadcrumbs), HOTSPOT.leavesBreadcrumbs);
  entry.writeUInt8(method.symbolShift, HOTSPOT.symbolShift);
  entry.writeUInt16LE(blob.name, HOTSPOT.name);
  entry.writeUInt16LE(blob.size, HOTSPOT.size);
  entry.writeUInt16LE(blob.frameSize, HOTSPOT.frameSize);
  entry.writeUInt16LE(blob.frameComplete.at, HOTSPOT.frameComplete);
  entry.writeUInt16LE(blob.codeBegin.at, HOTSPOT.codeBegin);
  entry.writeUInt16LE(blob.compileId, HOTSPOT.compileId);
  entry.writeUInt16LE(blob.deopt.at, HOTSPOT.deopt);
  entry.writeUInt16LE(blob.deoptMethodHandle, HOTSPOT.deoptMethodHandle);
  entry.writeUInt16LE(blob.origPc, HOTSPOT.origPc);
  entry.writeUInt16LE(method.constMethod, HOTSPOT.methodConst);
  entry.writeUInt16LE(method.codeSize, HOTSPOT.constCodeSize);
  entry.writeUInt16LE(method.constBytes, HOTSPOT.constBytes);
  entry.writeUInt16LE(method.constants, HOTSPOT.constPool);
  entry.writeUInt16LE(method.poolHolder, HOTSPOT.poolClass);
  entry.writeUInt16LE(method.className, HOTSPOT.className);
  return entry;
}
