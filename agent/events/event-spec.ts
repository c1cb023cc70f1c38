/**
 * What --event names: an event of the kernel or the processor, a tracepoint, or a place in user code. docs/events.md has the
 * forms.
 */

import { parseBytes } from '../../common/base/size.ts';
import { findPerfEvent, PERF_FORMS, type PerfEventNumbers } from './perf-names.ts';

/** An event of the perf subsystem. */
export interface PerfEventSpec extends Omit<PerfEventNumbers, 'name'> {
  kind: 'perf';
  text: string;
}

/** Which number of an event is its value, and which events are left out. */
export interface FieldSettings {
  /** Of the event; each counts 1 without it. */
  value: string | undefined;
  /** Of the value. */
  unit: string;
  filter: { field: string; comparison: Comparison; operand: bigint } | undefined;
}

/** Code at a symbol of a file; fields are the words that it is called with, as C or Go passes them. */
export interface UprobeSpec extends FieldSettings {
  kind: 'uprobe';
  text: string;
  /** A path, or the name of a program or library. */
  path: string;
  symbol: string;
  /** Bytes behind the symbol's start. */
  offset: number;
}

/** How long a function takes, from its call to its return. */
export interface UretprobeSpec {
  kind: 'uretprobe';
  text: string;
  path: string;
  symbol: string;
}

/** A probe that the program's authors have put there; fields are its arguments. */
export interface UsdtSpec extends FieldSettings {
  kind: 'usdt';
  text: string;
  path: string;
  provider: string;
  name: string;
}

export type Comparison = '==' | '!=' | '<' | '>';

/** Fields are ARGUMENT or ARGUMENT.MEMBER. */
export interface TracepointSpec extends FieldSettings {
  kind: 'tracepoint';
  text: string;
  category: string;
  name: string;
}

/** What allocators give out. */
export interface MallocSpec {
  kind: 'malloc';
  text: string;
  /** A path, or the name of a program or library; undefined: the C library and the usual other allocators. */
  path: string | undefined;
  /** Of which one stack is taken, in the mean. */
  everyBytes: number;
}

/** Memory that programs take from the kernel. */
export interface MmapSpec {
  kind: 'mmap';
  text: string;
}

/** What threads wait for locks, with --off-cpu's programs. */
interface LockSpec {
  kind: 'lock';
  text: string;
}

export type EventSpec =
  | { kind: 'cpu-clock'; text: string }
  | LockSpec
  | PerfEventSpec
  | UprobeSpec
  | UretprobeSpec
  | UsdtSpec
  | TracepointSpec
  | MallocSpec
  | MmapSpec;

export type ProbeSpec = UprobeSpec | UretprobeSpec | UsdtSpec | MallocSpec;

const PROBES: ReadonlySet<EventSpec['kind']> = new Set(['uprobe', 'uretprobe', 'usdt', 'malloc']);

/** It is at places in user code. */
export const isProbe = (event: EventSpec): event is ProbeSpec => PROBES.has(event.kind);

/** The text names no event; the message says which there are. */
export class BadEvent extends Error {
  override readonly name = 'BadEvent';
}

const FORMS = [
  'cpu-clock',
  ...PERF_FORMS,
  'tracepoint:CATEGORY:NAME',
  'uprobe:PATH:SYMBOL[+OFFSET]',
  'uretprobe:PATH:SYMBOL',
  'usdt:PATH:PROVIDER:NAME',
  'malloc',
  'mmap',
  'lock',
];

/** Throws {@link BadEvent}. */
export function parseEvent(text: string): EventSpec {
  if (text === 'cpu-clock' || text === 'lock' || text === 'mmap') return { kind: text, text };
  const perf = findPerfEvent(text);
  if (perf) return perfSpec(perf);
  const form = /^\w*/.exec(text)![0];
  if (Object.hasOwn(PARSERS, form)) return PARSERS[form]!(text);
  throw new BadEvent(`there is no event "${text}": give one of ${FORMS.join(', ')}`);
}

const perfSpec = ({ name, ...numbers }: PerfEventNumbers): PerfEventSpec => ({
  ...{ kind: 'perf', text: name },
  ...numbers,
});

const PARSERS: Readonly<Record<string, (text: string) => EventSpec>> = {
  uprobe: parseUprobe,
  uretprobe: parseUretprobe,
  usdt: parseUsdt,
  tracepoint: parseTracepoint,
  malloc: parseMalloc,
};

const MAX_OFFSET = 1 << 20;

const ARGUMENT = String.raw`arg\d\d?(?::[iu](?:8|16|32|64))?`;

/** What follows a symbol is an offset where it is a number. */
const UPROBE = new RegExp(
  String.raw`^uprobe:([^:]+):(.+?)(?:\+(0x[0-9a-f]+|\d+))?(${settingsPattern(ARGUMENT)})$`,
  'i',
);

function parseUprobe(text: string): UprobeSpec {
  const [, path, symbol = '', offset = '0', settings = ''] = UPROBE.exec(text) ?? [];
  if (path === undefined || Number(offset) > MAX_OFFSET || /,(value|if)=/.test(symbol))
    throw new BadEvent(
      `"${text}" is not a probe: write uprobe:PATH:SYMBOL or uprobe:PATH:SYMBOL+OFFSET, such as uprobe:libc:malloc, with ,value=arg0, ,unit=UNIT and ,if=arg1:i32>NUMBER behind it where wanted`,
    );
  return { kind: 'uprobe', text, path, symbol, offset: Number(offset), ...readSettings(settings) };
}

function parseUretprobe(text: string): UretprobeSpec {
  const [, path, symbol] = /^uretprobe:([^:]+):(.+)$/.exec(text) ?? [];
  if (path === undefined || symbol === undefined)
    throw new BadEvent(
      `"${text}" is not a probe: write uretprobe:PATH:SYMBOL, such as uretprobe:libc:getaddrinfo`,
    );
  return { kind: 'uretprobe', text, path, symbol };
}

const USDT = new RegExp(`^usdt:([^:]+):([^:,]+):([^:,]+)(${settingsPattern(ARGUMENT)})$`, 'i');

function parseUsdt(text: string): UsdtSpec {
  const [, path, provider, name, settings = ''] = USDT.exec(text) ?? [];
  if (path === undefined || provider === undefined || name === undefined)
    throw new BadEvent(
      `"${text}" is not a probe: write usdt:PATH:PROVIDER:NAME, such as usdt:python3:python:gc__start, with ,value=arg0, ,unit=UNIT and ,if=arg1>NUMBER behind it where wanted`,
    );
  return { kind: 'usdt', text, path, provider, name, ...readSettings(settings) };
}

/** As Go's heap profiles. */
const EVERY_BYTES = 512 << 10;
/** As MAX_SCALE of ebpf/value-choice.h. */
const MAX_EVERY_BYTES = 2 ** 40;

function parseMalloc(text: string): MallocSpec {
  const found = /^malloc(?::(.+?))?(?:,every=([^,]+))?$/.exec(text);
  const everyBytes = found?.[2] === undefined ? EVERY_BYTES : parseBytes(found[2]);
  if (!found || !(everyBytes >= 1 && everyBytes <= MAX_EVERY_BYTES))
    throw new BadEvent(
      `"${text}" is not an event: write malloc, or malloc:PATH for a program or library with an allocator of its own, and ,every=BYTES behind it where wanted, such as malloc,every=64KiB`,
    );
  return { kind: 'malloc', text, path: found[1], everyBytes };
}

const TRACEPOINT = new RegExp(
  String.raw`^tracepoint:(\w+):(\w+)(${settingsPattern(String.raw`\w+(?:\.\w+)?`)})$`,
  'i',
);

function parseTracepoint(text: string): TracepointSpec {
  const [, category, name, settings = ''] = TRACEPOINT.exec(text) ?? [];
  if (category === undefined || name === undefined)
    throw new BadEvent(
      `"${text}" is not a tracepoint: write tracepoint:CATEGORY:NAME, with ,value=FIELD, ,unit=UNIT and ,if=FIELD>NUMBER behind it where wanted, such as tracepoint:kmem:kmalloc,value=bytes_alloc,unit=bytes`,
    );
  return { kind: 'tracepoint', text, category, name, ...readSettings(settings) };
}

function settingsPattern(field: string): string {
  return String.raw`(?:,(?:value=${field}|unit=\w+|if=${field}(?:==|!=|<|>)-?(?:0x[0-9a-f]+|\d+)))*`;
}

function readSettings(settings: string): FieldSettings {
  const value = /,value=([^,]+)/.exec(settings)?.[1];
  const unit = /,unit=([^,]+)/.exec(settings)?.[1] ?? 'count';
  const [, field, comparison, operand] = /,if=([\w.:]+)(==|!=|<|>)([^,]+)/.exec(settings) ?? [];
  const filter =
    field === undefined
      ? undefined
      : { field, comparison: comparison as Comparison, operand: toBigInt(operand!) };
  return { value, unit, filter };
}

/** Of 64 bits, signed or not. */
function toBigInt(text: string): bigint {
  const number = text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text);
  if (number >= -(1n << 63n) && number < 1n << 64n) return number;
  throw new BadEvent(`no field of an event is ${text}: numbers have 64 bits at most`);
}
