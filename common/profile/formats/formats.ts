/** File formats, chosen by the name's ending or by name; JSON files are told apart by what they hold. */
import { gunzipSync } from 'node:zlib';
import { cutDeepStacks } from '../model/deep-stacks.ts';
import { parseJson } from '../model/json.ts';
import { mergeProfiles } from '../model/merge.ts';
import { mainOf, type Profile, type ProfileFile, type ProfileSet, setOf } from '../model/profile.ts';
import { DEFAULT_READ_LIMITS, ReadBudget, ReadLimitError, type ReadLimits } from '../model/read-limits.ts';
import { type DecodeResult, decodeOtlp } from '../otlp/otlp-decode.ts';
import { encodeOtlp } from '../otlp/otlp-encode.ts';
import { isOtlpJson, readOtlpJson, writeOtlpJson } from '../otlp/otlp-json.ts';
import { formatTree } from '../text/report-tree.ts';
import { isChromeTrace, readChromeTrace, writeChromeTrace } from './chrome-trace.ts';
import { writeFirefox } from './firefox.ts';
import { isFirefox, readFirefox } from './firefox-read.ts';
import { FoldedReader, foldedLines, isFoldedLine } from './folded.ts';
import { JsonScan } from './json-scan.ts';
import { isPerfScript, PerfScriptReader } from './perf-script.ts';
import { readPprof, writePprof } from './pprof.ts';
import { PprofScan } from './pprof-scan.ts';
import { protobufKind } from './protobuf-kind.ts';
import { isSpeedscope, readSpeedscope, writeSpeedscope } from './speedscope.ts';
import { TextLines } from './text-lines.ts';
import { isCpuProfile, readCpuProfile } from './v8-cpu-profile.ts';

/** What a writer makes: all of it, or parts that together may be longer than a string can be. */
export type Written = Uint8Array | Iterable<string>;

interface Format {
  /** For --from and --format. */
  name: string;
  /** In lower case. */
  endings: readonly string[];
  read?(budget: ReadBudget): Reader;
  write?(set: ProfileSet): Written;
  /** Whether it has room for all types of a set: else it holds the main one. */
  hasTypes?: boolean;
}

/** Takes a file's unpacked bytes as they come. */
interface Reader {
  push(chunk: Uint8Array): void;
  finish(): ProfileFile;
}

/** Of a format that has one type. */
const single =
  <T>(write: (profile: Profile) => T) =>
  (set: ProfileSet): T =>
    write(mainOf(set));

const SCOPE = { scopeName: 'everyframe', scopeVersion: '' };

const FORMATS: readonly Format[] = [
  {
    ...{ name: 'pprof', endings: ['.pb.gz', '.pprof', '.pb'], read: pprofReader },
    ...{ write: writePprof, hasTypes: true },
  },
  { name: 'folded', endings: ['.folded', '.collapsed'], read: textReader, write: single(foldedLines) },
  {
    ...{ name: 'otlp', endings: ['.otlp'], read: otlpReader },
    ...{ write: ({ profiles }) => encodeOtlp(profiles, SCOPE), hasTypes: true },
  },
  {
    ...{ name: 'otlp-json', endings: ['.otlp.json'], read: jsonReader },
    ...{ write: ({ profiles }) => writeOtlpJson(profiles, SCOPE), hasTypes: true },
  },
  { name: 'speedscope', endings: ['.speedscope.json'], read: jsonReader, write: single(writeSpeedscope) },
  { name: 'firefox', endings: ['.firefox.json'], read: jsonReader, write: single(writeFirefox) },
  { name: 'chrome', endings: ['.trace.json'], read: jsonReader, write: single(writeChromeTrace) },
  { name: 'text', endings: ['.txt'], read: textReader, write: single((profile) => formatTree(profile)) },
  { name: 'perf-script', endings: ['.perf', '.script'], read: perfReader },
  { name: 'cpuprofile', endings: ['.cpuprofile'], read: jsonReader },
  { name: 'json', endings: ['.json'], read: jsonReader },
];

const PICTURES = /\.(html|svg)$/i;

/** A packed file is what it was before; `.pb.gz` is a format of its own. */
const endingOf = (fileName: string): string => fileName.toLowerCase();

function formatOf(fileName: string, can: 'read' | 'write'): Format | undefined {
  const name = endingOf(fileName);
  const plain = can === 'read' ? name.replace(/\.gz$/, '') : name;
  return FORMATS.find(
    (one) => one[can] && one.endings.some((ending) => name.endsWith(ending) || plain.endsWith(ending)),
  );
}

const endingsOf = (can: 'read' | 'write'): string =>
  FORMATS.filter((format) => format[can])
    .flatMap(({ endings }) => endings)
    .join(', ');

/** For help texts. */
export const readableEndings = (): string => endingsOf('read');
export const writableEndings = (): string => endingsOf('write');
/** Of --from and --format. */
export const READABLE_FORMATS = FORMATS.filter(({ read }) => read).map(({ name }) => name);
export const WRITABLE_FORMATS = FORMATS.filter(({ write }) => write).map(({ name }) => name);

const unknownEnding = (fileName: string, can: 'read' | 'written', others: readonly string[]): Error => {
  const endings = can === 'read' ? endingsOf('read') : endingsOf('write');
  return new Error(
    `${fileName}: unknown ${can === 'read' ? 'input' : 'output'} format: end the name with one of ${[endings, ...others].join(', ')}, ` +
      `or give ${can === 'read' ? '--from' : '--format'} FORMAT`,
  );
};

/**
 * @param others endings that the caller writes itself, to be named too
 * @throws Error naming the known formats where the name has none of their endings
 */
export function checkFormat(fileName: string, others: readonly string[] = []): void {
  if (!formatOf(fileName, 'write')) throw unknownEnding(fileName, 'written', others);
}

type ReadableFormat = Format & Required<Pick<Format, 'read'>>;

/** Whether a file's name says what it is: if not, its content may. */
export const isNamedByFormat = (fileName: string): boolean =>
  formatOf(fileName, 'read') !== undefined || PICTURES.test(fileName);

/** @throws Error naming the known formats where neither the name nor `from` is one that can be read */
export function checkReadable(fileName: string, from?: string): void {
  readableFormat(fileName, from);
}

function readableFormat(fileName: string, from: string | undefined): ReadableFormat {
  const format = from === undefined ? formatOf(fileName, 'read') : FORMATS.find(({ name }) => name === from);
  if (format?.read) return { ...format, read: format.read };
  if (PICTURES.test(fileName))
    throw new Error(
      `${fileName} is for looking at, in a browser, and can't be read again: name the .pb.gz or other profile that it was made from`,
    );
  throw unknownEnding(fileName, 'read', []);
}

export interface ReadOptions {
  /** One of {@link READABLE_FORMATS}, whatever the file's name says. */
  from?: string | undefined;
  limits?: ReadLimits;
  /** `from` is what the content looks like, and nobody said it. */
  isGuess?: boolean;
}

/** Reads one file whose unpacked bytes are pushed as they come. */
export class ProfileReading {
  readonly #fileName: string;
  readonly #title: string;
  readonly #advice: string;
  readonly #mayBeEmpty: boolean;
  #isEmpty = true;
  readonly #budget: ReadBudget;
  readonly #reader: Reader;

  /** @throws Error naming the known formats where neither the name nor `from` is one */
  constructor(fileName: string, { from, limits = DEFAULT_READ_LIMITS, isGuess }: ReadOptions = {}) {
    const { read, endings } = readableFormat(fileName, from);
    this.#fileName = fileName;
    this.#title = endings[0]!;
    this.#advice = isGuess ? '. It was taken for one by its content: --from FORMAT says what it is' : '';
    this.#budget = new ReadBudget(limits);
    this.#mayBeEmpty = read === textReader || read === perfReader;
    this.#reader = read(this.#budget);
  }

  /** @throws Error that names the file and what is wrong with it; ReadLimitError */
  push(chunk: Uint8Array): void {
    this.#isEmpty &&= chunk.length === 0;
    this.#try(() => this.#reader.push(chunk));
  }

  /** @throws as {@link push} */
  finish(): ProfileFile {
    // a text without a line is a recording without a sample
    if (this.#isEmpty && !this.#mayBeEmpty) throw new Error(`${this.#fileName} is empty`);
    return this.#try(() => {
      const file = this.#reader.finish();
      return { ...file, profiles: cutDeepStacks(file.profiles, this.#budget) };
    });
  }

  #try<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (error instanceof ReadLimitError) throw error.of(this.#fileName);
      const { message } = error as Error;
      throw new Error(`${this.#fileName} is not a ${this.#title} profile: ${message}${this.#advice}`);
    }
  }
}

export const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** The main profile of a file. @throws as {@link readProfiles} */
export const readProfile = (fileName: string, bytes: Uint8Array, options?: ReadOptions): Profile =>
  mainOf(readProfiles(fileName, bytes, options));

/** @throws Error that names the file and what is wrong with it; ReadLimitError where it would cost too much */
export function readProfiles(fileName: string, bytes: Uint8Array, options: ReadOptions = {}): ProfileFile {
  const reading = new ProfileReading(fileName, options);
  reading.push(isGzip(bytes) ? unpack(fileName, bytes, options) : bytes);
  return reading.finish();
}

function unpack(
  fileName: string,
  bytes: Uint8Array,
  { limits = DEFAULT_READ_LIMITS }: ReadOptions,
): Uint8Array {
  const maxOutputLength = Math.min(limits.maxMemoryBytes, 2 ** 31);
  try {
    return gunzipSync(bytes, { maxOutputLength });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw new ReadLimitError(limits, 'unpacked bytes', maxOutputLength).of(fileName);
    throw new Error(`${fileName} can't be unpacked: ${message}`);
  }
}

const formatToWrite = (fileName: string, format: string | undefined): Format | undefined =>
  format === undefined ? formatOf(fileName, 'write') : FORMATS.find(({ name }) => name === format);

/** Whether such a file holds all types of a set, and not the main one only. */
export const holdsAllTypes = (fileName: string, format?: string): boolean =>
  formatToWrite(fileName, format)?.hasTypes ?? false;

/**
 * @param format one of {@link WRITABLE_FORMATS}, whatever the file's name says
 * @throws Error naming the known formats where the name has none of their endings, or what does not fit into the format
 */
export function writeParts(fileName: string, set: ProfileSet, format?: string): Written {
  const chosen = formatToWrite(fileName, format);
  if (!chosen?.write) throw unknownEnding(fileName, 'written', []);
  try {
    return chosen.write(set);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Error(
      `${fileName}: this profile is too large for ${chosen.name} (${error.message}): use .pb.gz`,
    );
  }
}

/** One profile, all of it at once. @throws as {@link writeParts} */
export const writeProfile = (fileName: string, profile: Profile): Uint8Array =>
  writeProfiles(fileName, setOf([profile]));

/** All of it at once. @throws as {@link writeParts} */
export function writeProfiles(fileName: string, set: ProfileSet): Uint8Array {
  const written = writeParts(fileName, set);
  return written instanceof Uint8Array ? written : new TextEncoder().encode([...written].join(''));
}

/** Holds a file's bytes until its end, in one piece; `scan` sees all that came so far. */
function wholeReader(
  scan: (all: Uint8Array, added: Uint8Array) => void,
  read: (bytes: Uint8Array) => ProfileFile,
): Reader {
  let held: Buffer = Buffer.alloc(0);
  let length = 0;
  return {
    push(chunk) {
      if (length === 0 && held.length === 0) {
        // what comes in one piece is read where it lies
        held = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      } else {
        if (length + chunk.length > held.length) {
          const larger = Buffer.allocUnsafeSlow(Math.max(2 * held.length, length + chunk.length));
          held.copy(larger, 0, 0, length);
          held = larger;
        }
        held.set(chunk, length);
      }
      length += chunk.length;
      scan(held.subarray(0, length), chunk);
    },
    finish: () => read(held.subarray(0, length)),
  };
}

function pprofReader(budget: ReadBudget): Reader {
  const scan = new PprofScan(budget);
  return wholeReader(
    (all, added) => {
      budget.spend('bytes', added.length, added.length);
      scan.advance(all);
    },
    (bytes) => {
      scan.finish(bytes);
      return readPprof(bytes, budget);
    },
  );
}

function otlpReader(budget: ReadBudget): Reader {
  return wholeReader(
    (_all, added) => budget.spend('bytes', OTLP_BYTES_PER_BYTE * added.length, added.length),
    readOtlp,
  );
}

/** What decoding a request has limits of its own for, see otlp-scan.ts. */
const OTLP_BYTES_PER_BYTE = 4;

function readOtlp(bytes: Uint8Array): ProfileFile {
  // to protobuf it is a request without a profile, to people a file that was never written
  if (bytes.length === 0) throw new Error('it is empty');
  return ofRequest(decodeOtlp(bytes));
}

const ofRequest = ({ profiles, problems }: DecodeResult): ProfileFile => ({
  ...setOf(mergeProfiles(profiles)),
  problems,
});

const NO_PROBLEMS: ProfileFile['problems'] = new Map();
const ofOne = (profile: Profile): ProfileFile => ({ ...setOf([profile]), problems: NO_PROBLEMS });

function lineReader(reader: { line(text: string, number: number): void; finish(): ProfileFile }): Reader {
  const lines = new TextLines((line, number) => reader.line(line, number));
  return {
    push: (chunk) => lines.push(chunk),
    finish() {
      lines.finish();
      return reader.finish();
    },
  };
}

function perfReader(budget: ReadBudget): Reader {
  return lineReader(new PerfScriptReader(budget));
}

function foldedReader(budget: ReadBudget): Reader {
  const reader = new FoldedReader(budget);
  return lineReader({
    line: (text, number) => reader.line(text, number),
    finish: () => ofOne(reader.finish()),
  });
}

/** What a report begins with. */
const REPORT =
  /^[\d.,]+ [^,;]{1,100}(,\d{3}[^,;]{0,100})*, [\d,]+ (stack|function|process|name|thread|librar|line|sets? of labels)/;
const SNIFF_BYTES = 64 * 1024;

/** Folded stacks or perf's text: a `.txt` or `.folded` may be either. */
function textReader(budget: ReadBudget): Reader {
  return sniffing((start) => textFormat(start)(budget));
}

function textFormat(start: Uint8Array): (budget: ReadBudget) => Reader {
  const text = new TextDecoder().decode(start.subarray(0, 200));
  if (REPORT.test(text))
    throw new Error(
      "it is a report, which can't be read again: name the .pb.gz or other profile that it was made from",
    );
  return isPerfScript(start) ? perfReader : foldedReader;
}

/** Chooses the reader by how the file begins. */
function sniffing(choose: (start: Uint8Array) => Reader): Reader {
  let start: Uint8Array = new Uint8Array(0);
  let reader: Reader | undefined;
  const decide = (): Reader => {
    reader = choose(start);
    reader.push(start);
    start = new Uint8Array(0);
    return reader;
  };
  return {
    push(chunk) {
      if (reader) return reader.push(chunk);
      start = start.length === 0 ? chunk.slice() : Buffer.concat([start, chunk]);
      if (start.length >= SNIFF_BYTES) decide();
    },
    finish: () => (reader ?? decide()).finish(),
  };
}

const JSON_FORMATS = [
  { is: isSpeedscope, read: readSpeedscope },
  { is: isFirefox, read: (value: unknown, budget: ReadBudget) => [readFirefox(value, budget)] },
  { is: isChromeTrace, read: (value: unknown, budget: ReadBudget) => [readChromeTrace(value, budget)] },
  { is: isCpuProfile, read: (value: unknown, budget: ReadBudget) => [readCpuProfile(value, budget)] },
] as const;

function jsonReader(budget: ReadBudget): Reader {
  const scan = new JsonScan(budget);
  return wholeReader(
    (_all, added) => scan.push(added),
    (bytes) => readJson(bytes, budget),
  );
}

function readJson(bytes: Uint8Array, budget: ReadBudget): ProfileFile {
  const value = parseJson(bytes);
  if (isOtlpJson(value)) return ofRequest(readOtlpJson(value));
  const format = JSON_FORMATS.find(({ is }) => is(value));
  if (!format)
    throw new Error("it is none of OTLP's, speedscope's, the Firefox Profiler's, Chrome's and V8's JSON");
  return { ...setOf(mergeProfiles(format.read(value, budget))), problems: NO_PROBLEMS };
}

/**
 * Of a file whose name says none: by how it begins.
 *
 * @param start its first 64 KiB, unpacked
 * @throws Error naming the formats that can be read where it is none of them
 */
export function formatByContent(fileName: string, start: Uint8Array): string {
  if (start.length === 0) throw new Error(`${fileName} is empty`);
  const text = new TextDecoder().decode(start).trimStart();
  if (/^[[{]/.test(text)) return 'json';
  if (isPerfScript(start)) return 'perf-script';
  if (REPORT.test(text) || (isFoldedLine(firstLine(text)) && !text.includes('\0'))) return 'folded';
  const format = protobufKind(start);
  if (format === undefined)
    throw new Error(
      `${fileName} looks like no format that can be read (${READABLE_FORMATS.join(', ')}): --from FORMAT says what it is`,
    );
  return format;
}

/** Of a stack that is longer than what there is of the file, as if its value had come. */
function firstLine(text: string): string {
  const end = text.indexOf('\n');
  if (end >= 0) return text.slice(0, end);
  return text.length >= SNIFF_BYTES / 2 && text.includes(';') ? `${text} 1` : text;
}
