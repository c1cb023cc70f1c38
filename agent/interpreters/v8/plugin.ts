/** V8 9.4 and later, as in Node 16 to 26: docs/interpreters/v8.md. */
import { FrameKind, RUNTIME_MAPS, Runtime, V8, V8Tier } from '../../records/records.gen.ts';
import type {
  FrameWords,
  NameCache,
  NameFailure,
  ProcessMemory,
  RuntimeFrame,
  RuntimePlugin,
} from '../contract.ts';
import { type Code, findCode, findPlaces } from './code.ts';
import { detectV8, type V8Binary } from './detect-v8.ts';
import { Functions, type JsFunction } from './functions.ts';
import { Heap } from './heap.ts';
import { layoutOf, type V8Layout } from './layout.ts';
import { repairPositions } from './peeled-loops.ts';
import { WasmModules } from './wasm.ts';

/** What is known of a process; it has one entry of the plug-in's cache. */
interface V8Process {
  heap: Heap;
  functions: Functions;
  wasm: WasmModules;
}

const PROCESS = 0;
const HIGH = 2 ** 32;
const TIER_AT = 2 ** 48;

export const v8: RuntimePlugin = {
  name: 'v8',
  fileName: /^(lib)?node/,
  id: Runtime.V8,
  map: RUNTIME_MAPS.V8,
  frameKind: FrameKind.V8,
  frameType: 'v8js',
  linesFrom: 'source-map',
  detect(elf) {
    const found = detectV8(elf);
    if (!found) return undefined;
    const layout = layoutOf(found);
    return { runtime: 'v8', version: found.version.text, facts: layout, entry: encode(found, layout) };
  },
  nameFrame(words, facts, memory, cache) {
    const known = processOf(facts as V8Layout, memory, cache);
    const { heap, functions, wasm } = known;
    const tier = Math.floor(words.operand / TIER_AT);
    const address = words.operand % TIER_AT;
    switch (tier) {
      case V8Tier.INTERPRETED:
        return nameInterpreted(functions, address, words);
      case V8Tier.JIT:
        return nameCompiled(known, address, (words.high & 0xffff) * HIGH + words.low);
      case V8Tier.FUNCTION:
        return nameFunction(functions, address, words);
      default:
        return (
          wasm.frames(address, (words.high & 0xffff) * HIGH + words.low) ??
          nameStub(heap.layout, words.high >>> 16)
        );
    }
  },
};

function encode({ blob }: V8Binary, layout: V8Layout): Uint8Array {
  const entry = Buffer.alloc(V8.bytes);
  entry.writeBigUInt64LE(BigInt(blob.start), V8.blobStart);
  entry.writeBigUInt64LE(BigInt(blob.length), V8.blobLength);
  entry.writeUInt16LE(layout.types.bytecodeArray, V8.bytecodeArrayType);
  entry.writeUInt8(layout.functionShared, V8.functionShared);
  entry.writeUInt8(layout.shared.name, V8.sharedName);
  entry.writeUInt8(layout.shared.script, V8.sharedScript);
  entry.writeUInt8(layout.wasm.frameType, V8.wasmFrame);
  return entry;
}

function processOf(layout: V8Layout, memory: ProcessMemory, cache: NameCache): V8Process {
  const known = cache.get(PROCESS) as V8Process | undefined;
  if (known && known.heap.layout === layout) {
    known.heap.memory = memory;
    return known;
  }
  const heap = new Heap(memory, layout);
  const made = { heap, functions: new Functions(heap), wasm: new WasmModules(heap) };
  cache.set(PROCESS, made);
  return made;
}

type Named = RuntimeFrame | readonly RuntimeFrame[] | NameFailure;

const failure = (result: 'replaced' | undefined): NameFailure => result ?? 'replaced';

function nameInterpreted(functions: Functions, address: number, { low, high }: FrameWords): Named {
  const func = functions.read(address, low);
  if (typeof func !== 'object') return failure(func);
  return functions.frame(func, functions.bytecodePosition(func, high)?.offset ?? -1);
}

function nameFunction(functions: Functions, address: number, { low }: FrameWords): Named {
  const func = functions.read(address, low);
  return typeof func === 'object' ? functions.frame(func, -1) : failure(func);
}

function nameCompiled(known: V8Process, address: number, pc: number): Named {
  const { heap, functions } = known;
  const code = findCode(heap, pc);
  const ofFrame = address > 0 ? functions.read(address) : undefined;
  const func = typeof ofFrame === 'object' ? ofFrame : undefined;
  if (code && !code.isBaseline) return nameOptimized(known, { code, pc, func });
  if (!func) return 'replaced';
  const position = code ? functions.baselinePosition(func, code, pc) : undefined;
  return functions.frame(func, position?.offset ?? -1);
}

/** What the code says goes before what the frame says: at its first instructions the frame is still the caller's. */
function nameOptimized(
  { heap, functions, wasm }: V8Process,
  { code, pc, func }: { code: Code; pc: number; func: JsFunction | undefined },
): Named {
  const found = findPlaces(heap, code, pc);
  const functionsOf = found.places.map(({ shared }) => functions.read(shared));
  const known = (i: number): JsFunction | undefined => {
    const one = functionsOf[i];
    return typeof one === 'object' ? one : undefined;
  };
  const tableOf = (i: number) => (known(i) ? functions.positionsOf(known(i)!) : []);
  const places =
    code.isMaglev && heap.layout.hasPeeledLoops
      ? repairPositions(heap, { code, pc }, found, tableOf)
      : found.places;
  const frames = places.flatMap(({ offset }, i) => {
    const one = known(i);
    return one ? [wasm.exported(one.data) ?? functions.frame(one, offset)] : [];
  });
  if (frames.length > 0) return frames;
  return func ? functions.frame(func, -1) : 'replaced';
}

/** Frames of V8's own: WebAssembly and what leads into and out of it, regular expressions. */
function nameStub({ frameTypes }: V8Layout, type: number): RuntimeFrame {
  const name = frameTypes[type]?.replace(/Frame$/, '') ?? `frame of type ${type}`;
  return { name: `[v8: ${name}]`, file: '', line: 0, column: 0, startLine: 0, isPlaceless: true };
}
