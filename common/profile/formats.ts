/** File formats, chosen by the name's ending; JSON files are told apart by what they hold. */
import { gunzipSync } from 'node:zlib';
import { isChromeTrace, readChromeTrace, writeChromeTrace } from './chrome-trace.ts';
import { cutDeepStacks } from './deep-stacks.ts';
import { writeFirefox } from './firefox.ts';
import { isFirefox, readFirefox } from './firefox-read.ts';
import { readFolded, writeFolded } from './folded.ts';
import { parseJson } from './json.ts';
import { mergeProfiles } from './merge.ts';
import { decodeOtlp } from './otlp-decode.ts';
import { encodeOtlp } from './otlp-encode.ts';
import { isOtlpJson, readOtlpJson, writeOtlpJson } from './otlp-json.ts';
import { isPerfScript, readPerfScript } from './perf-script.ts';
import { readPprof, writePprof } from './pprof.ts';
import type { Profile } from './profile.ts';
import { formatReport } from './residency.ts';
import { isSpeedscope, readSpeedscope, writeSpeedscope } from './speedscope.ts';

interface Format {
  endings: readonly string[];
  read?(bytes: Uint8Array): Profile;
  write?(profile: Profile): Uint8Array;
}

const SCOPE = { scopeName: 'everyframe', scopeVersion: '' };
const MAX_BYTES = 1 << 30;

const FORMATS: readonly Format[] = [
  { endings: ['.pb.gz', '.pprof', '.pb'], read: readPprof, write: writePprof },
  { endings: ['.folded', '.collapsed'], read: readText, write: writeFolded },
  {
    endings: ['.otlp'],
    read: readOtlp,
    write: (profile) => encodeOtlp(profile, SCOPE),
  },
  { endings: ['.otlp.json'], read: readJson, write: (profile) => writeOtlpJson(profile, SCOPE) },
  { endings: ['.speedscope.json'], read: readJson, write: writeSpeedscope },
  { endings: ['.firefox.json'], read: readJson, write: writeFirefox },
  { endings: ['.trace.json'], read: readJson, write: writeChromeTrace },
  {
    endings: ['.txt'],
    read: readText,
    write: (profile) => new TextEncoder().encode(formatReport(profile, 'stack')),
  },
  { endings: ['.perf', '.script'], read: readPerfScript },
  { endings: ['.json', '.json.gz'], read: readJson },
];

const endingsOf = (can: 'read' | 'write'): string =>
  FORMATS.filter((format) => format[can])
    .flatMap(({ endings }) => endings)
    .join(', ');

/** What {@link formatReport} begins with. */
const REPORT = /^[\d,]+ samples, [\d,]+ stacks\n/;
const PICTURES = /\.(html|svg)$/;

function formatOf(fileName: string, can: 'read' | 'write', others: readonly string[] = []): Format {
  const format = FORMATS.find((one) => one[can] && one.endings.some((ending) => fileName.endsWith(ending)));
  if (format) return format;
  if (can === 'read' && PICTURES.test(fileName))
    throw new Error(
      `${fileName} is for looking at, in a browser, and can't be read again: name the .pb.gz or other profile that it was made from`,
    );
  throw new Error(
    `${fileName}: its ending names no format that can be ${can === 'read' ? 'read' : 'written'}: use one of ${[endingsOf(can), ...others].join(', ')}`,
  );
}

/** For help texts. */
export const readableEndings = (): string => endingsOf('read');
export const writableEndings = (): string => endingsOf('write');

/**
 * @param others endings that the caller writes itself, to be named too
 * @throws Error naming the known formats where the name has none of their endings
 */
export const checkFormat = (fileName: string, others: readonly string[] = []): void =>
  void formatOf(fileName, 'write', others);

/** @throws Error that names the file and what is wrong with it */
export function readProfile(fileName: string, bytes: Uint8Array): Profile {
  const format = formatOf(fileName, 'read');
  try {
    return cutDeepStacks(format.read!(bytes));
  } catch (error) {
    throw new Error(`${fileName} is no ${format.endings[0]} profile: ${(error as Error).message}`);
  }
}

/** @throws Error naming the known formats where the name has none of their endings */
export const writeProfile = (fileName: string, profile: Profile): Uint8Array =>
  formatOf(fileName, 'write').write!(profile);

function readOtlp(bytes: Uint8Array): Profile {
  // to protobuf it is a request without a profile, to people a file that was never written
  if (bytes.length === 0) throw new Error('it is empty');
  return mergeProfiles(decodeOtlp(bytes).profiles);
}

/** Folded stacks or perf's text: a `.txt` may be either. */
function readText(bytes: Uint8Array): Profile {
  if (REPORT.test(new TextDecoder().decode(bytes.subarray(0, 64))))
    throw new Error(
      "it is a report, which can't be read again: name the .pb.gz or other profile that it was made from",
    );
  return isPerfScript(bytes) ? readPerfScript(bytes) : readFolded(bytes);
}

const JSON_FORMATS = [
  { is: isOtlpJson, read: readOtlpJson },
  { is: isSpeedscope, read: readSpeedscope },
  { is: isFirefox, read: readFirefox },
  { is: isChromeTrace, read: readChromeTrace },
] as const;

function readJson(bytes: Uint8Array): Profile {
  const isZipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const value = parseJson(isZipped ? gunzipSync(bytes, { maxOutputLength: MAX_BYTES }) : bytes);
  const format = JSON_FORMATS.find(({ is }) => is(value));
  if (!format)
    throw new Error("it is none of OTLP's, speedscope's, the Firefox Profiler's and Chrome's JSON");
  return mergeProfiles([format.read(value)]);
}
