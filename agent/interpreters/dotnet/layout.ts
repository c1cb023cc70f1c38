/**
 * Where .NET keeps what unwinding and naming need. The offsets are those of release builds of .NET 8 and 9; a field that the
 * process's own description has is taken from there, which for .NET 10 are all that differ.
 */
import { DOTNET } from '../../records/records.gen.ts';
import type { Descriptor } from './descriptor.ts';

export type MapForm = 'nibbles' | 'bits';

/** Byte offsets. */
export interface DotnetLayout {
  major: number;
  /** Address of the first level of the map of sections. */
  ranges: number;
  hasMapPointers: boolean;
  section: { flags: number; heap: number; module: number };
  heap: { mapBase: number; map: number };
  header: { debugInfo: number; methodDesc: number; unwindCount: number; unwindInfos: number };
  /** `info` in Module; the others in ReadyToRunInfo: the table of functions, how many, the map from code to methods, and what
   * leads to the image's sections. */
  precompiled: { info: number; functions: number; count: number; buckets: number; header: number };
  method: { flags3: number; chunkIndex: number; flags: number; remainderBits: number; alignment: number };
  chunk: { methodTable: number; range: number; size: number };
  methodTable: { module: number };
  /** Of a dynamic method: address of its name; undefined where it is not told. */
  dynamicName: number;
  /** In Module: pointer to the simple name of its assembly, which stands in the module's metadata. */
  simpleName: number;
  /** From Module to the assembly's path in UTF-16: offsets of the pointers on the way. */
  path: readonly number[];
  /** How the map from code to IL is written; undefined: as nobody has seen it yet. */
  mapForm: MapForm | undefined;
  /** Is it told where in their callers inlined methods are called? .NET 10 has memory there that nothing was written to. */
  hasInlinedCalls: boolean;
  /** Where a PatchpointInfo ends, without its locals' slots. */
  patchpoint: { size: number; locals: number };
}

const OF_8 = {
  section: { flags: 16, heap: 40, module: 32 },
  heap: { mapBase: 32, map: 40 },
  header: { debugInfo: 0, methodDesc: 24, unwindCount: 32, unwindInfos: 36 },
  precompiled: { functions: 0x50, count: 0x58, buckets: 0x1c0, header: 16 },
  method: { flags3: 0, chunkIndex: 2, flags: 6, remainderBits: 12, alignment: 8 },
  chunk: { methodTable: 0, range: 18, size: 24 },
  methodTable: { module: 24 },
  dynamicName: 24,
  simpleName: 0x108,
  // PEAssembly, PEImage, text
  path: [0x110, 8, 16],
  patchpoint: { size: 32, locals: 8 },
};

export function layoutOf(major: number, ranges: number, described: Descriptor | undefined): DotnetLayout {
  const field = (type: string, name: string, known: number): number => described?.field(type, name) ?? known;
  const map = described?.field('ReadyToRunInfo', 'EntryPointToMethodDescMap');
  const path = described?.field('Module', 'Path');
  return {
    major,
    ranges,
    hasMapPointers: (described?.contract('ExecutionManager') ?? 0) >= 2,
    section: {
      flags: field('RangeSection', 'Flags', OF_8.section.flags),
      heap: field('RangeSection', 'HeapList', OF_8.section.heap),
      module: field('RangeSection', 'R2RModule', OF_8.section.module),
    },
    heap: {
      mapBase: field('CodeHeapListNode', 'MapBase', OF_8.heap.mapBase),
      map: field('CodeHeapListNode', 'HeaderMap', OF_8.heap.map),
    },
    header: {
      debugInfo: OF_8.header.debugInfo,
      methodDesc: field('RealCodeHeader', 'MethodDesc', OF_8.header.methodDesc),
      unwindCount: field('RealCodeHeader', 'NumUnwindInfos', OF_8.header.unwindCount),
      unwindInfos: field('RealCodeHeader', 'UnwindInfos', OF_8.header.unwindInfos),
    },
    precompiled: {
      info: field('Module', 'ReadyToRunInfo', major === 8 ? 0x480 : 0x490),
      functions: field('ReadyToRunInfo', 'RuntimeFunctions', OF_8.precompiled.functions),
      count: field('ReadyToRunInfo', 'NumRuntimeFunctions', OF_8.precompiled.count),
      header: field('ReadyToRunInfo', 'ReadyToRunHeader', OF_8.precompiled.header),
      buckets: map === undefined ? OF_8.precompiled.buckets : map + field('HashMap', 'Buckets', 16),
    },
    method: {
      flags3: field('MethodDesc', 'Flags3AndTokenRemainder', OF_8.method.flags3),
      chunkIndex: field('MethodDesc', 'ChunkIndex', OF_8.method.chunkIndex),
      flags: field('MethodDesc', 'Flags', OF_8.method.flags),
      remainderBits: described?.global('MethodDescTokenRemainderBitCount') ?? OF_8.method.remainderBits,
      alignment: described?.global('MethodDescAlignment') ?? OF_8.method.alignment,
    },
    chunk: {
      methodTable: field('MethodDescChunk', 'MethodTable', OF_8.chunk.methodTable),
      range: field('MethodDescChunk', 'FlagsAndTokenRange', OF_8.chunk.range),
      size: field('MethodDescChunk', '!', OF_8.chunk.size),
    },
    methodTable: { module: field('MethodTable', 'Module', OF_8.methodTable.module) },
    dynamicName: field('DynamicMethodDesc', 'MethodName', OF_8.dynamicName),
    // the pointer stands in front of the path
    simpleName: path === undefined ? OF_8.simpleName : path - 8,
    path: path === undefined ? OF_8.path : [path],
    mapForm: major < 10 ? 'nibbles' : major === 10 ? 'bits' : undefined,
    hasInlinedCalls: major < 10,
    patchpoint: major < 10 ? OF_8.patchpoint : { size: 40, locals: 16 },
  };
}

/** The value of the BPF map. */
export function encodeDotnet(layout: DotnetLayout): Buffer {
  const entry = Buffer.alloc(DOTNET.bytes);
  const { section, heap, header, precompiled } = layout;
  entry.writeBigUInt64LE(BigInt(layout.ranges), DOTNET.ranges);
  entry.writeUInt16LE(section.flags, DOTNET.sectionFlags);
  entry.writeUInt16LE(section.heap, DOTNET.sectionHeap);
  entry.writeUInt16LE(section.module, DOTNET.sectionModule);
  entry.writeUInt16LE(heap.mapBase, DOTNET.heapMapBase);
  entry.writeUInt16LE(heap.map, DOTNET.heapMap);
  entry.writeUInt16LE(header.methodDesc, DOTNET.methodDesc);
  entry.writeUInt16LE(header.unwindCount, DOTNET.unwindCount);
  entry.writeUInt16LE(header.unwindInfos, DOTNET.unwindInfos);
  entry.writeUInt16LE(precompiled.info, DOTNET.modulePrecompiled);
  entry.writeUInt16LE(precompiled.functions, DOTNET.functions);
  entry.writeUInt16LE(precompiled.count, DOTNET.functionCount);
  entry.writeUInt16LE(Number(layout.hasMapPointers), DOTNET.hasMapPointers);
  return entry;
}
