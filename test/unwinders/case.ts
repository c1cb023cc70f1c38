/**
 * A captured process: what host.c reads, and in comment lines what it takes to name the frames.
 *
 *   #symbol KEY OFFSET NAME    as nm says; a frame without one is `file+0xoffset`
 *   #file KEY NAME
 *   #runtime KEY JSON          DetectedRuntime without its entry
 *   #said TEXT                 what the program itself said of where it is
 *   #expect FRAME              the stack, leaf first
 */
import {
  type DetectedRuntime,
  NameCache,
  type ProcessMemory,
  type RuntimeFrame,
} from '../../agent/interpreters/contract.ts';
import { FrameKind, Marker } from '../../agent/records/records.gen.ts';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';

const PAGE_BYTES = 4096;

/** What host.c says of one stack. */
export interface Unwound {
  reads: number;
  frames: number;
  marker: number;
  words: readonly bigint[];
  counters: Readonly<Record<string, number>>;
}

/** A frame of it. */
export interface Frame {
  kind: number;
  /** Low 56 bits of the first word. */
  operand: bigint;
  second: bigint;
}

export interface Case {
  files: Map<string, string>;
  symbols: Map<string, string>;
  runtimes: Map<string, DetectedRuntime>;
  memory: ProcessMemory;
  said: string;
  expected: string[];
}

const STACK = /^stack reads (\w+) frames (\w+) marker (\w+) words(.*?) counters(.*)$/;

/** Of every `stack` line. */
export function parseStacks(output: string): Unwound[] {
  return output.split('\n').flatMap((line): Unwound[] => {
    const [, reads, frames, marker, words, counters] = STACK.exec(line) ?? [];
    if (reads === undefined) return [];
    const pairs = counters!.split(' ').filter((pair) => pair !== '');
    return [
      {
        reads: Number.parseInt(reads, 16),
        frames: Number.parseInt(frames!, 16),
        marker: Number.parseInt(marker!, 16),
        words: words!.split(' ').flatMap((word) => (word === '' ? [] : [BigInt(`0x${word}`)])),
        counters: Object.fromEntries(
          pairs.map((pair) => [pair.split('=')[0]!, Number.parseInt(pair.split('=')[1]!, 16)]),
        ),
      },
    ];
  });
}

/** Throws where the words are not frames, as after the last one. */
export function framesOf(words: readonly bigint[]): Frame[] {
  const frames: Frame[] = [];
  for (let i = 0; i < words.length; i++) {
    const kind = Number(words[i]! >> 56n);
    const operand = words[i]! & ((1n << 56n) - 1n);
    const hasSecond = kind !== FrameKind.ANON && kind !== FrameKind.MARKER;
    if (!(Object.values(FrameKind) as number[]).includes(kind) || kind === FrameKind.NONE)
      throw new Error(`no kind of frame: word ${i} is 0x${words[i]!.toString(16)}`);
    if (hasSecond && i + 1 >= words.length) throw new Error('half a frame at the end');
    frames.push({ kind, operand, second: hasSecond ? words[++i]! : 0n });
  }
  return frames;
}

export function parseCase(text: string): Case {
  const result: Case = {
    files: new Map(),
    symbols: new Map(),
    runtimes: new Map(),
    memory: { read: () => undefined },
    said: '',
    expected: [],
  };
  const pieces: { start: number; bytes: Buffer }[] = [];
  for (const line of text.split('\n')) {
    const [what, first = '', second = ''] = line.split(' ', 3);
    const rest = line.slice(line.indexOf(' ') + 1);
    if (what === '#file') result.files.set(first, second);
    else if (what === '#symbol') result.symbols.set(`${first} ${second}`, line.split(' ').slice(3).join(' '));
    else if (what === '#runtime')
      result.runtimes.set(first, JSON.parse(rest.slice(first.length + 1)) as DetectedRuntime);
    else if (what === '#said') result.said = rest;
    else if (what === '#expect') result.expected.push(rest);
    else if (what === 'memory')
      pieces.push({ start: Number.parseInt(first, 16), bytes: Buffer.from(second, 'hex') });
  }
  result.memory = memoryOf(pieces);
  return result;
}

/** Whole pages, 0 where nothing was captured: naming reads by pages, too. A page without any piece is not mapped. */
function memoryOf(pieces: readonly { start: number; bytes: Buffer }[]): ProcessMemory {
  const pages = new Map<number, Buffer>();
  for (const { start, bytes } of pieces) {
    for (let at = start; at < start + bytes.length; ) {
      const number = Math.floor(at / PAGE_BYTES);
      const end = Math.min((number + 1) * PAGE_BYTES, start + bytes.length);
      const page = pages.get(number) ?? Buffer.alloc(PAGE_BYTES);
      bytes.copy(page, at % PAGE_BYTES, at - start, end - start);
      pages.set(number, page);
      at = end;
    }
  }
  return {
    read(address, length) {
      const parts: Buffer[] = [];
      for (let at = address; at < address + length; ) {
        const page = pages.get(Math.floor(at / PAGE_BYTES));
        if (!page) break;
        parts.push(page.subarray(at % PAGE_BYTES, (at % PAGE_BYTES) + address + length - at));
        at += parts.at(-1)!.length;
      }
      return parts.length > 0 ? new Uint8Array(Buffer.concat(parts)) : undefined;
    },
  };
}

/** A line a frame, leaf first, inlined functions expanded. */
export function textOf(frames: readonly Frame[], source: Case): string[] {
  const caches = new Map<number, NameCache>();
  return frames.flatMap((frame, i): string[] => {
    const key = frame.second.toString(16);
    const at = frame.operand.toString(16);
    if (frame.kind === FrameKind.FILE)
      return [source.symbols.get(`${key} ${at}`) ?? `${source.files.get(key) ?? key}+0x${at}`];
    if (frame.kind === FrameKind.ANON) return ['[anon]'];
    if (frame.kind === FrameKind.MARKER)
      return [`[cut: ${Object.entries(Marker).find(([, value]) => BigInt(value) === frame.operand)?.[0]}]`];
    const plugin = RUNTIMES.find(({ frameKind }) => frameKind === frame.kind);
    const file = frames
      .slice(i)
      .find((f) => f.kind === FrameKind.FILE && source.runtimes.has(f.second.toString(16)));
    // Erlang's frames have none of its VM's below them
    const runtime =
      source.runtimes.get(file?.second.toString(16) ?? '') ??
      [...source.runtimes.values()].find((one) => one.runtime === plugin?.name);
    if (!plugin || !runtime) return ['[runtime of no file]'];
    const cache = caches.get(frame.kind) ?? new NameCache();
    caches.set(frame.kind, cache);
    const words = {
      operand: Number(frame.operand),
      low: Number(frame.second & 0xffffffffn),
      high: Number(frame.second >> 32n),
    };
    const named = plugin.nameFrame(words, runtime.facts, source.memory, cache);
    if (typeof named === 'string') return [`[${plugin.name}: ${named}]`];
    return (Array.isArray(named) ? (named as readonly RuntimeFrame[]) : [named as RuntimeFrame]).map(
      ({ name, file, line }) => (file === '' ? name : `${name} ${file.split('/').at(-1)}:${line}`),
    );
  });
}
