/**
 * Where .NET keeps what unwinding and naming need. The offsets are those of release builds of .NET 6 to 9; a field that the
 * process's own description has is taken from there, which for .NET 10 are most that differ.
 */
import { DOTNET } from '../../records/records.gen.ts';
import type { Descriptor } from './descriptor.ts';

export type MapForm = 'nibbles' | 'bits';

/** Byte offsets. */
export interface DotnetLayout {
  major: number;
  /** Address of the first level of the map of sections; of the pointer to the first one where they are a list. */
  ranges: number;
  hasMapPointers: boolean;
  /** .NET 6 and 7: the sections are a list. */
  hasList: boolean;
  section: { flags: number; heap: number; module: number };
  heap: { mapBase: number; map: number };
  header: { debugInfo: number; methodDesc: number; unwindCount: number; unwindInfos: number };
  /** `info` in Module; the others in ReadyToRunInfo: the table of functions, how many, the map from code to methods, and what
   * leads to the image's sections. */
  precompiled: { info: number; functions: number; count: number; buckets: number; header: number };
  method: { flags3: number; chunkIndex: number; flags: number; remainderBits: number; alignment: number };
  chunk: { methodTable: number; range: number; size: number };
  methodTable: {
    /** Of the module with its type; in .NET 6 and 7 of the one that loaded it, which another slot may override. */
    module: number;
    hasOverrides: boolean;
  };
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
  hasList: false,
  section: { flags: 16, heap: 40, module: 32 },
  heap: { mapBase: 32, map: 40 },
  header: { debugInfo: 0, methodDesc: 24, unwindCount: 32, unwindInfos: 36 },
  precompiled: { info: 0x480, functions: 0x50, count: 0x58, buckets: 0x1c0, header: 16 },
  method: { flags3: 0, chunkIndex: 2, flags: 6, remainderBits: 12, alignment: 8 },
  chunk: { methodTable: 0, range: 18, size: 24 },
  methodTable: { module: 24, hasOverrides: false },
  dynamicName: 24,
  simpleName: 0x108,
  // PEAssembly, PEImage, text
  path: [0x110, 8, 16],
  patchpoint: { size: 32, locals: 8 },
};

type Known = typeof OF_8;

const OF_7: Known = {
  ...OF_8,
  hasList: true,
  section: { flags: 40, heap: 48, module: 48 },
  precompiled: { info: 0x4a0, functions: 0x50, count: 0x58, buckets: 0x1b0, header: 16 },
  method: { ...OF_8.method, remainderBits: 13 },
  methodTable: { module: 24, hasOverrides: true },
  simpleName: 0x100,
  path: [0x108, 8, 16],
};

const BY_MAJOR: Readonly<Record<number, Known>> = {
  6: {
    ...OF_7,
    precompiled: { info: 0x488, functions: 0x40, count: 0x48, buckets: 0x1a0, header: 8 },
    method: { ...OF_8.method, remainderBits: 14 },
    simpleName: 8,
    path: [16, 8, 16],
    patchpoint: { size: 20, locals: 0 },
  },
  7: OF_7,
  8: OF_8,
  9: { ...OF_8, precompiled: { ...OF_8.precompiled, info: 0x490 } },
};
/** Of what .NET 10 and later do not say of themselves. */
const NEWEST: Known = { ...OF_8, patchpoint: { size: 40, locals: 16 } };

export function layoutOf(major: number, ranges: number, described: Descriptor | undefined): DotnetLayout {
  const known = BY_MAJOR[major] ?? NEWEST;
  const field = (type: string, name: string, offset: number): number =>
    described?.field(type, name) ?? offset;
  const map = described?.field('ReadyToRunInfo', 'EntryPointToMethodDescMap');
  const path = described?.field('Module', 'Path');
  return {
    major,
    ranges,
    hasList: known.hasList,
    hasMapPointers: (described?.contract('ExecutionManager') ?? 0) >= 2,
    section: {
      flags: field('RangeSection', 'Flags', known.section.flags),
      heap: field('RangeSection', 'HeapList', known.section.heap),
      module: field('RangeSection', 'R2RModule', known.section.module),
    },
    heap: {
      mapBase: field('CodeHeapListNode', 'MapBase', known.heap.mapBase),
      map: field('CodeHeapListNode', 'HeaderMap', known.heap.map),
    },
    header: {
      debugInfo: known.header.debugInfo,
      methodDesc: field('RealCodeHeader', 'MethodDesc', known.header.methodDesc),
      unwindCount: field('RealCodeHeader', 'NumUnwindInfos', known.header.unwindCount),
      unwindInfos: field('RealCodeHeader', 'UnwindInfos', known.header.unwindInfos),
    },
    precompiled: {
      info: field('Module', 'ReadyToRunInfo', known.precompiled.info),
      functions: field('ReadyToRunInfo', 'RuntimeFunctions', known.precompiled.functions),
      count: field('ReadyToRunInfo', 'NumRuntimeFunctions', known.precompiled.count),
      header: field('ReadyToRunInfo', 'ReadyToRunHeader', known.precompiled.header),
      buckets: map === undefined ? known.precompiled.buckets : map + field('HashMap', 'Buckets', 16),
    },
    method: {
      flags3: field('MethodDesc', 'Flags3AndTokenRemainder', known.method.flags3),
      chunkIndex: field('MethodDesc', 'ChunkIndex', known.method.chunkIndex),
      flags: field('MethodDesc', 'Flags', known.method.flags),
      remainderBits: described?.global('MethodDescTokenRemainderBitCount') ?? known.method.remainderBits,
      alignment: described?.global('MethodDescAlignment') ?? known.method.alignment,
    },
    chunk: {
      methodTable: field('MethodDescChunk', 'MethodTable', known.chunk.methodTable),
      range: field('MethodDescChunk', 'FlagsAndTokenRange', known.chunk.range),
      size: field('MethodDescChunk', '!', known.chunk.size),
    },
    methodTable: {
      module: field('MethodTable', 'Module', known.methodTable.module),
      hasOverrides: known.methodTable.hasOverrides,
    },
    dynamicName: field('DynamicMethodDesc', 'MethodName', known.dynamicName),
    // the pointer stands in front of the path
    simpleName: path === undefined ? known.simpleName : path - 8,
    path: path === undefined ? known.path : [path],
    mapForm: major < 10 ? 'nibbles' : major === 10 ? 'bits' : undefined,
    hasInlinedCalls: major < 10,
    patchpoint: known.patchpoint,
  };
}

/** The value of the BPF map. `codeEnd`: offset in the runtime's file behind which its own code does not go. */
export function encodeDotnet(layout: DotnetLayout, codeEnd: number): Buffer {
  const entry = Buffer.alloc(DOTNET.bytes);
  const { section, heap, header, precompiled, method, chunk, methodTable } = layout;
  entry.writeBigUInt64LE(BigInt(layout.ranges), DOTNET.ranges);
  entry.writeUInt32LE(codeEnd, DOTNET.codeEnd);
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
  entry.writeUInt16LE(Number(layout.hasList), DOTNET.hasList);
  entry.writeUInt16LE(Number(layout.hasMapPointers), DOTNET.hasMapPointers);
  entry.writeUInt16LE(method.chunkIndex, DOTNET.chunkIndex);
  entry.writeUInt16LE(method.alignment, DOTNET.methodUnit);
  entry.writeUInt16LE(chunk.size, DOTNET.chunkBytes);
  entry.writeUInt16LE(chunk.methodTable, DOTNET.chunkTable);
  entry.writeUInt16LE(methodTable.module, DOTNET.tableModule);
  entry.writeUInt16LE(layout.simpleName, DOTNET.simpleName);
  return entry;
}
