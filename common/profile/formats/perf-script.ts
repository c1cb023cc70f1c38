/**
 * The text of `perf script`, with its default fields or any others. An event has a line of its own, then a line a frame,
 * the innermost first and each after a tab, then an empty line; without call chains its one frame ends its line.
 */
import { joinEqual, mergeProfiles } from '../model/merge.ts';
import { type FrameType, type Profile, type ProfileFile, setOf } from '../model/profile.ts';
import { type FrameText, type Owner, ProfileBuilder } from '../model/profile-builder.ts';
import { MAX_VALUE, NO_PERIOD } from '../model/profile-type.ts';
import { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';
import { type EventHeader, HeaderReader } from './perf-script-header.ts';

/** Events that are looked at to tell the fields. */
const FIRST_EVENTS = 256;
const FIRST_LINES = 32_768;
/** As far as a test of a file's format looks. */
const SNIFFED_LINES = 400;

const KERNEL_FILE =
  /^\[(kernel\.kallsyms|guest\.kernel\.kallsyms|[\w-]+)\](_text|_stext)?$|\.ko(\.[gx]z|\.zst)?$/;
const USER_AREA = /^\[(vdso|vsyscall|heap|stack|anon.*|unknown|uprobes)\]$/;
/** With --show-mmap-events and the like. */
const OTHER_RECORD = / PERF_RECORD_[A-Z0-9_]+/;
const ADDRESS = /^([0-9a-f]{1,16})(?:\s+(\S.*))?$/s;
const SOURCE_LINE = /^ {2}(\S.*):(\d{1,9})$/s;

type Kind = 'end' | 'comment' | 'frame' | 'source' | 'event';

function kindOf(line: string, isInEvent: boolean): Kind {
  if (line.trim() === '') return 'end';
  if (line.startsWith('#')) return 'comment';
  if (line.startsWith('\t')) return 'frame';
  if (isInEvent && SOURCE_LINE.test(line)) return 'source';
  // copied from a terminal, tabs are spaces; IDs and times are not addresses with a name behind them
  if (isInEvent && /^ {4,}[0-9a-f]{4,16} \S/.test(line) && !/:( |$)/.test(line)) return 'frame';
  return 'event';
}

export function isPerfScript(bytes: Uint8Array): boolean {
  const lines = new TextDecoder().decode(bytes).split('\n').slice(0, SNIFFED_LINES);
  const first = lines.findIndex((line) => line.trim() !== '' && !line.startsWith('#'));
  if (first < 0) return false;
  const isFrame = (line = ''): boolean => /^\t\s*[0-9a-f]{1,16}(\s|$)/.test(line);
  // without fields of their own events begin with an empty line
  if (isFrame(lines[first])) return true;
  if (isFrame(lines[first + 1])) return true;
  const events = lines
    .filter((line) => kindOf(line, false) === 'event' && !OTHER_RECORD.test(line))
    .slice(0, 20);
  return events.length > 0 && events.every((line) => /\s\d+\.(\d{6}|\d{9}):(\s|$)/.test(line));
}

export class PerfScriptReader {
  readonly #budget: ReadBudget;
  /** By the name of the event, '' for those that sample CPU time. */
  readonly #kinds = new Map<string, EventKind>();
  readonly #problems = new Map<string, number>();
  readonly #names = new ProcessNames();
  /** The first lines, until they say what the fields are. */
  #held: string[] | undefined = [];
  #heldEvents = 0;
  #isInHeld = false;
  #headers: HeaderReader | undefined;
  #event: EventHeader | undefined;
  #isInEvent = false;
  #frames: string[] = [];
  #first: bigint | undefined;
  #last = 0n;
  #events = 0;
  /** An event had a frame or a time: a thread's name and number alone may be any text. */
  #isTelling = false;

  constructor(budget = new ReadBudget()) {
    this.#budget = budget;
  }

  line(line: string): void {
    if (!this.#held) {
      this.#take(line);
      return;
    }
    this.#held.push(line);
    const kind = kindOf(line, this.#isInHeld);
    this.#isInHeld = kind === 'end' ? false : this.#isInHeld || kind === 'event' || kind === 'frame';
    if (kind === 'event' && !OTHER_RECORD.test(line)) this.#heldEvents++;
    if (this.#heldEvents >= FIRST_EVENTS || this.#held.length >= FIRST_LINES) this.#decide();
  }

  /** A profile of CPU samples, and one for each other event. @throws Error for text that is none of perf's */
  finish(): ProfileFile {
    this.#decide();
    this.#endEvent();
    if (this.#events === 0 || !this.#isTelling) throw new Error('it has no event of perf script');
    const profiles = [...this.#kinds].map(
      ([
        event,
        {
          builder: { profile },
        },
      ]) => {
        // perf's clock counts from boot: a length can be told, a date can't
        profile.timeUnixNano = this.#first ?? 0n;
        profile.durationNano = this.#last - (this.#first ?? 0n);
        if (event !== '') profile.type = { ...NO_PERIOD, sampleType: { type: event, unit: 'count' } };
        return this.#names.complete(profile);
      },
    );
    const set = setOf(profiles.length > 1 ? mergeProfiles(profiles) : profiles);
    return { ...set, problems: this.#problems };
  }

  #decide(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    let isInEvent = false;
    const events = held.filter((line) => {
      const kind = kindOf(line, isInEvent);
      isInEvent = kind === 'end' ? false : isInEvent || kind === 'event' || kind === 'frame';
      return kind === 'event' && !OTHER_RECORD.test(line);
    });
    if (events.length > 0) this.#headers = HeaderReader.forLines(events);
    for (const line of held) this.#take(line);
  }

  #take(line: string): void {
    const kind = kindOf(line, this.#isInEvent);
    if (kind === 'end') this.#endEvent();
    else if (kind === 'event') this.#begin(line);
    else if (kind === 'frame') {
      this.#isInEvent = true;
      this.#frames.push(line.trim());
    } else if (kind === 'source' && this.#frames.length > 0) {
      this.#frames.push(`${this.#frames.pop()}\n${line}`);
    }
  }

  #begin(line: string): void {
    this.#endEvent();
    if (OTHER_RECORD.test(line)) return;
    this.#event = this.#headers?.read(line);
    this.#isInEvent = this.#event !== undefined;
  }

  #endEvent(): void {
    const [event, frames] = [this.#event, this.#frames];
    const isWhole = this.#isInEvent;
    this.#event = undefined;
    this.#isInEvent = false;
    this.#frames = [];
    if (!isWhole) return;
    this.#events++;
    const own = event?.rest.trim() ?? '';
    if (frames.length === 0 && ADDRESS.test(own)) frames.push(own);
    const { pid, tid, cpu, time, comm, hasBoth, event: name, period } = event ?? NO_HEADER;
    if (frames.length > 0 || time >= 0n) this.#isTelling = true;
    // without a PID the threads of a process can't be told to be one: each is known by its name
    const process = hasBoth ? this.#names.of(pid, tid, comm) : comm;
    const owner = { process, pid: hasBoth ? pid : 0, tid, thread: comm, cpu };
    this.#add(frames, owner, time, nameOfEvent(name), period);
    if (time >= 0n) this.#widen(time);
  }

  /** Samples of CPU time count 1; of other events each stands for as many as its period says. */
  #add(frames: readonly string[], owner: Owner, time: bigint, event: string, period: number): void {
    if (period > MAX_VALUE) {
      this.#leaveOut('an event stands for more than 2^63 of them');
      return;
    }
    let kind = this.#kinds.get(event);
    if (!kind) {
      if (this.#kinds.size >= MAX_KINDS) {
        this.#leaveOut(`it has more than ${MAX_KINDS} kinds of events`);
        return;
      }
      kind = { builder: new ProfileBuilder(this.#budget), locations: new Map() };
      this.#kinds.set(event, kind);
    }
    const { builder } = kind;
    let node = ROOT;
    for (let i = frames.length - 1; i >= 0; i--) node = builder.enter(node, locationOf(kind, frames[i]!));
    const value = event === '' ? 1 : Math.max(1, period);
    const values = value === 1 ? undefined : [value];
    if (time < 0n) builder.add(builder.stackAt(node), owner, value);
    else builder.add(builder.stackAt(node), owner, value, [time], values);
  }

  #leaveOut(reason: string): void {
    this.#problems.set(reason, (this.#problems.get(reason) ?? 0) + 1);
  }

  #widen(time: bigint): void {
    this.#first = this.#first === undefined || time < this.#first ? time : this.#first;
    if (time > this.#last) this.#last = time;
  }
}

/** What is read of one kind of events; locations by their line. */
interface EventKind {
  builder: ProfileBuilder;
  locations: Map<string, number>;
}

function locationOf({ builder, locations }: EventKind, text: string): number {
  let location = locations.get(text);
  if (location === undefined) {
    location = builder.location(readFrame(text));
    locations.set(text, location);
  }
  return location;
}

/** Each is a profile. */
const MAX_KINDS = 64;
/** By which perf samples CPU time, one of them by default. */
const CPU_EVENT = /^(cpu_\w+\/|\w+_pmu\/)?(cpu-clock|task-clock|cpu-cycles|cycles)\b/;
const OTHER_EVENT = /^[A-Za-z][\w.-]*(?::[A-Za-z_][\w.-]*)?/;

/** Without modifiers such as `:u` and `:pp`; '' for CPU time, and for what does not look like an event. */
function nameOfEvent(event: string): string {
  if (event === '' || CPU_EVENT.test(event)) return '';
  return (OTHER_EVENT.exec(event)?.[0] ?? '').replace(/:[uhkIGHpPSDWebQ]{1,8}$/, '');
}

const NO_HEADER: EventHeader = {
  ...{ comm: '', pid: 0, tid: 0, cpu: -1, time: -1n, hasBoth: false, rest: '' },
  ...{ event: '', period: 1 },
};

/** `address name+0xoffset (file+0xoffset)`, all but the address optional, and a line `  file.c:12` behind it. */
function readFrame(text: string): FrameText {
  const [line = '', source = ''] = text.split('\n');
  const match = ADDRESS.exec(line.trim());
  if (!match) return { name: line.trim() };
  const [, address = '0', rest = ''] = match;
  const { name, file } = splitFile(rest);
  const isNamed = name !== '' && name !== '[unknown]';
  const [, path = '', offset] = /^(.*?)(?:\+0x([0-9a-f]{1,16}))?$/s.exec(file)!;
  const mapping = path === 'inlined' || path === '[unknown]' ? '' : path;
  const isKernel = KERNEL_FILE.test(mapping) && !USER_AREA.test(mapping);
  const frameType: FrameType = isKernel ? 'kernel' : 'native';
  const kernelFile = mapping.replace(/^\[(.*)\](_s?text)?$/, '$1').replace(/^kernel\.kallsyms$/, 'vmlinux');
  const [, sourceFile = '', sourceLine = 0] = SOURCE_LINE.exec(source) ?? [];
  return {
    name: isNamed ? name : '',
    mapping: isKernel ? kernelFile : mapping,
    frameType,
    // addresses are the process's own: they name a place only where nothing else does
    ...(!isNamed && { address: BigInt(`0x${offset ?? address}`) }),
    ...(Number(sourceLine) > 0 && { file: sourceFile, line: Number(sourceLine) }),
  };
}

/** A file's name may hold parentheses, and so may a function's. */
function splitFile(text: string): { name: string; file: string } {
  if (!text.endsWith(')')) return { name: withoutOffset(text), file: '' };
  const at = startOfFile(text);
  if (at < 0) return { name: withoutOffset(text), file: '' };
  return { name: withoutOffset(text.slice(0, at).trimEnd()), file: text.slice(at + 1, -1) };
}

/** Index of the parenthesis that opens the file's name, -1 for none. */
function startOfFile(text: string): number {
  if (text.startsWith('(')) return 0;
  const behindOffset = /\+0x[0-9a-f]+ \(/.exec(text);
  if (behindOffset) return behindOffset.index + behindOffset[0].length - 1;
  // a path, an area of memory, or perf's word for a frame that has no file of its own
  const known = / \((?=\/|\[|inlined\)$|anon_inode:|memfd:|deleted\)$)/.exec(text);
  if (known) return known.index + 1;
  return / \([^()]*\)$/.test(text) ? text.lastIndexOf(' (') + 1 : -1;
}

const withoutOffset = (name: string): string => name.replace(/\+0x[0-9a-f]+$/, '');

/** perf writes names of threads: a process is called by its main thread's, as far as that was seen, else by its first one's. */
class ProcessNames {
  readonly #mains = new Map<number, string>();
  readonly #firsts = new Map<number, string>();

  /** '' where it is not known yet. */
  of(pid: number, tid: number, comm: string): string {
    if (pid === tid) this.#mains.set(pid, comm);
    else if (!this.#firsts.has(pid)) this.#firsts.set(pid, comm);
    return this.#mains.get(pid) ?? '';
  }

  complete(profile: Profile): Profile {
    const nameless = profile.processes.filter(({ pid, executableName }) => pid > 0 && executableName === '');
    if (nameless.length === 0) return profile;
    for (const process of nameless)
      process.executableName = this.#mains.get(process.pid) ?? this.#firsts.get(process.pid) ?? '';
    return joinEqual(profile);
  }
}
