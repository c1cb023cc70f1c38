/** Profiles from and to files, by the ending of their names: common's formats, and the page of one profile. */
import { spawnSync } from 'node:child_process';
import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { getHeapStatistics } from 'node:v8';
import { createGunzip } from 'node:zlib';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { makePage, makeSvg } from '../../collector/api/pictures.ts';
import { parseBytes } from '../../common/base/size.ts';
import { inWords } from '../../common/base/system-error.ts';
import {
  checkFormat,
  formatByContent,
  holdsAllTypes,
  isGzip,
  isNamedByFormat,
  ProfileReading,
  READABLE_FORMATS,
  type ReadOptions,
  WRITABLE_FORMATS,
  type Written,
  writableEndings,
  writeParts,
} from '../../common/profile/formats/formats.ts';
import {
  mainOf,
  type Profile,
  type ProfileFile,
  type ProfileSet,
} from '../../common/profile/model/profile.ts';
import { findType, typeNames } from '../../common/profile/model/profile-type.ts';
import type { ReadLimits } from '../../common/profile/model/read-limits.ts';
import { groupDigits } from '../../common/profile/text/report-text.ts';
import { withChoices } from '../program/settings.ts';
import { checkOutputFile, isStream, type OutputFlags, STDOUT, writeOutput } from './output-file.ts';

const PICTURES: Record<string, (title: string, profile: Profile) => string> = {
  html: makePage,
  svg: makeSvg,
};
const PICTURE_ENDINGS = Object.keys(PICTURES).map((name) => `.${name}`);
/** What a pipe is written in unless it is said: text, one line a stack. */
const STREAM_FORMAT = 'folded';

const STDIN = '-';
const CHUNK_BYTES = 1 << 20;
const SNIFF_BYTES = 1 << 16;
/** Of V8's heap: the estimates are from above, but not of everything. */
const HEAP_SHARE = 0.75;
/** Text that repeats itself is packed to a fortieth; gzip can make a thousandth of it. */
const MAX_EXPANSION = 200;
/** Small files are read whatever they expand to. */
const FREE_BYTES = 64 * 2 ** 20;
const HEAP_MARK = 'EVERYFRAME_HEAP';

const outputEndings = (): string => [writableEndings(), ...PICTURE_ENDINGS].join(', ');

export interface ReadFlags {
  from?: string;
  /** As `findType` takes it. */
  type?: string;
  maxMemory?: number;
}

export interface WriteFlags extends OutputFlags {
  output: string;
  format?: string;
}

const parseMemory = (text: string): number => {
  const bytes = parseBytes(text);
  if (!(bytes >= 2 ** 20)) throw new InvalidArgumentError('write a size such as 512MiB or 8GiB.');
  return bytes;
};

/** Of commands that read profiles. */
export const addReadFlags = (command: Command): Command =>
  command
    .addOption(
      withChoices(
        new Option('--from <FORMAT>', 'read as this format, whatever the name ends in'),
        READABLE_FORMATS,
      ),
    )
    .option(
      '--type <TYPE>',
      'samples of this type where a file has several, such as cpu, off_cpu or inuse_space (default: the main one)',
    )
    .addOption(
      new Option(
        '--max-memory <SIZE>',
        'refuse files that would need more memory to read (default: what Node.js may use here)',
      ).argParser(parseMemory),
    );

/** Of commands that write one. */
export const addWriteFlags = (command: Command): Command =>
  command
    .addOption(
      withChoices(
        new Option(
          '--format <FORMAT>',
          `write this format, whatever the name ends in (default for -o -: ${STREAM_FORMAT})`,
        ),
        [...WRITABLE_FORMATS, ...Object.keys(PICTURES)],
      ),
    )
    .option('--force', 'overwrite the output if it exists');

export const OUTPUT_HELP = `the ending selects the format: ${outputEndings()}; - is standard output`;

/** A picture's name, or one of common's formats; undefined: by the ending. */
function formatOf({ output, format }: WriteFlags): string | undefined {
  if (format !== undefined) return format;
  if (isStream(output)) return STREAM_FORMAT;
  const name = output.toLowerCase();
  return Object.keys(PICTURES).find((picture) => name.endsWith(`.${picture}`));
}

/**
 * Before something is recorded that could not be kept.
 *
 * @throws Error that names the endings there are, or says why the file can't be written
 */
export function checkOutput(flags: WriteFlags, inputs: readonly string[] = []): void {
  if (formatOf(flags) === undefined) checkFormat(flags.output, PICTURE_ENDINGS);
  checkOutputFile(flags.output, flags, inputs);
  if (flags.output === STDOUT && process.stdout.isTTY && isBinary(formatOf(flags)))
    throw new Error(`a terminal can't show ${flags.format}: give -o FILE, or a pipe`);
}

const isBinary = (format = ''): boolean => format === 'pprof' || format === 'otlp';

/** All types where the format has room for them, else the main one. @throws Error that names the file and says why it can't be written */
export async function saveProfiles(flags: WriteFlags, set: ProfileSet): Promise<void> {
  const format = formatOf(flags);
  const picture = format === undefined ? undefined : PICTURES[format];
  const content: Written = picture
    ? Buffer.from(picture(basename(flags.output).replace(/\.(html|svg)$/i, ''), mainOf(set)))
    : writeParts(flags.output, set, format);
  await writeOutput(flags.output, content, flags);
}

/** What `saveProfiles` left out, in a sentence; '' for nothing. */
export function droppedTypes(flags: WriteFlags, { profiles, main }: ProfileSet): string {
  const format = formatOf(flags);
  const isPicture = format !== undefined && Object.hasOwn(PICTURES, format);
  if (profiles.length === 1 || (!isPicture && holdsAllTypes(flags.output, format))) return '';
  const names = typeNames(profiles.map(({ type }) => type));
  const others = names.filter((_, i) => i !== main).join(', ');
  const name = flags.output === STDOUT ? 'standard output' : flags.output;
  return `${name} holds ${names[main]}, as such a file has one type; left out: ${others}. Choose with --type, or keep all in a .pb.gz`;
}

/** The set with nothing but that type. @throws Error that lists those there are */
export function onlyType({ profiles }: ProfileSet, type: string): ProfileSet {
  const found = findType(
    profiles.map((profile) => profile.type),
    type,
  );
  return { profiles: [profiles[found]!], main: 0 };
}

/** The type that was asked for, or the main one, with a word on standard error where there are others. @throws as `loadProfiles` */
export async function loadOneType(fileName: string, flags: ReadFlags = {}): Promise<Profile> {
  const file = await loadProfiles(fileName, flags);
  const { profiles, main } = file;
  if (flags.type !== undefined) return mainOf(onlyType(file, flags.type));
  if (profiles.length > 1) {
    const names = typeNames(profiles.map(({ type }) => type));
    const others = names.filter((_, i) => i !== main).join(', ');
    process.stderr.write(
      `everyframe: of ${nameOf(fileName)}, this is ${names[main]}; --type selects ${others}\n`,
    );
  }
  return profiles[main]!;
}

/**
 * Says on standard error what had to be left out.
 *
 * @throws Error that names the file and says why it can't be read, what is wrong with it, or which types there are; ReadLimitError
 */
export async function loadProfiles(fileName: string, flags: ReadFlags = {}): Promise<ProfileFile> {
  const file = await readFile(fileName, flags);
  for (const [reason, samples] of file.problems)
    process.stderr.write(
      `everyframe: ${groupDigits(samples)} samples of ${nameOf(fileName)} are left out: ${reason}\n`,
    );
  if (flags.type !== undefined) checkType(fileName, file, flags.type);
  return file;
}

function checkType(fileName: string, file: ProfileFile, type: string): void {
  try {
    onlyType(file, type);
  } catch (error) {
    throw new Error(`${nameOf(fileName)} has ${(error as Error).message}`);
  }
}

async function readFile(fileName: string, { from, maxMemory }: ReadFlags): Promise<ProfileFile> {
  const limits = limitsFor(maxMemory);
  // a wrong format is told before anything is read
  const isKnown = from !== undefined || (fileName !== STDIN && isNamedByFormat(fileName));
  const reading = isKnown ? newReading(fileName, { from, limits }) : undefined;
  try {
    return await readAll(unpacked(chunksOf(fileName), fileName), fileName, { from, limits }, reading);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    const failed = code.startsWith('Z_') ? 'unpacked' : 'read';
    throw new Error(`${nameOf(fileName)} can't be ${failed}: ${inWords(error)}`);
  }
}

export const nameOf = (fileName: string): string => (fileName === STDIN ? 'standard input' : fileName);

const newReading = (fileName: string, options: ReadOptions): ProfileReading =>
  new ProfileReading(nameOf(fileName), options);

async function readAll(
  chunks: AsyncIterable<Buffer>,
  fileName: string,
  options: ReadOptions,
  known: ProfileReading | undefined,
): Promise<ProfileFile> {
  let reading = known;
  let start: Buffer = Buffer.alloc(0);
  const decide = (): ProfileReading => {
    const from = formatByContent(nameOf(fileName), start);
    const chosen = newReading(fileName, { ...options, from, isGuess: true });
    chosen.push(start);
    return chosen;
  };
  for await (const chunk of chunks) {
    if (reading) reading.push(chunk);
    else {
      start = Buffer.concat([start, chunk]);
      if (start.length >= SNIFF_BYTES) reading = decide();
    }
  }
  return (reading ?? decide()).finish();
}

async function* chunksOf(fileName: string): AsyncGenerator<Buffer> {
  if (fileName !== STDIN) {
    const stats = statSync(fileName);
    if (stats.isDirectory()) throw new Error(`${fileName} can't be read: it is a directory`);
    if (!stats.isFile() && !stats.isFIFO()) throw new Error(`${fileName} can't be read: it is a device`);
  }
  yield* fileName === STDIN ? process.stdin : createReadStream(fileName, { highWaterMark: CHUNK_BYTES });
}

const isZstd = (bytes: Buffer): boolean => bytes.length >= 4 && bytes.readUInt32LE(0) === 0xfd2f_b528;

/** Whatever its name says, a file that begins as gzip's do is unpacked as it comes. */
async function* unpacked(chunks: AsyncGenerator<Buffer>, fileName: string): AsyncGenerator<Buffer> {
  const first = await chunks.next();
  if (first.done) return;
  if (isZstd(first.value))
    throw new Error(`${nameOf(fileName)} is packed by zstd: unpack it with zstd -d, or pack it with gzip`);
  if (!isGzip(first.value)) {
    yield first.value;
    yield* chunks;
    return;
  }
  const packed = async function* (): AsyncGenerator<Buffer> {
    yield first.value;
    yield* chunks;
  };
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  let bytes = 0;
  for await (const chunk of pipeline(Readable.from(packed()), gunzip, () => {})) {
    bytes += chunk.length;
    // little memory as it may take, reading it takes minutes
    if (bytes > Math.max(FREE_BYTES, MAX_EXPANSION * gunzip.bytesWritten))
      throw new Error(
        `${nameOf(fileName)} unpacks to more than ${MAX_EXPANSION} times its size: unpack it with gunzip to read it all the same`,
      );
    yield chunk as Buffer;
  }
}

const heapBytes = (): number => getHeapStatistics().heap_size_limit * HEAP_SHARE;

function limitsFor(maxMemory: number | undefined): ReadLimits {
  const maxMemoryBytes = maxMemory ?? heapBytes();
  const more = Math.ceil((2 * maxMemoryBytes) / 2 ** 30);
  return { maxMemoryBytes, advice: `give --max-memory ${more}GiB or more, or read a shorter recording` };
}

/** More memory than Node.js takes by itself is given to a process of its own, whose end is this one's. */
export function ensureHeap({ maxMemory = 0 }: ReadFlags): void {
  if (maxMemory <= heapBytes() || process.env[HEAP_MARK] !== undefined) return;
  const heap = `--max-old-space-size=${Math.ceil(maxMemory / HEAP_SHARE / 2 ** 20)}`;
  const { status, signal } = spawnSync(
    process.execPath,
    [...process.execArgv, heap, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [HEAP_MARK]: '1' } },
  );
  process.exit(signal ? 1 : (status ?? 1));
}
