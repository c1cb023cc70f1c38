/** File formats, chosen by the name's ending. */
import { readFolded, writeFolded } from './folded.ts';
import { mergeProfiles } from './merge.ts';
import { decodeOtlp } from './otlp-decode.ts';
import { encodeOtlp } from './otlp-encode.ts';
import { readPprof, writePprof } from './pprof.ts';
import type { Profile } from './profile.ts';

interface Format {
  endings: readonly string[];
  read(bytes: Uint8Array): Profile;
  write(profile: Profile): Uint8Array;
}

const FORMATS: readonly Format[] = [
  { endings: ['.pb.gz', '.pprof'], read: readPprof, write: writePprof },
  { endings: ['.folded', '.txt'], read: readFolded, write: writeFolded },
  {
    endings: ['.otlp'],
    read: (bytes) => mergeProfiles(decodeOtlp(bytes).profiles),
    write: (profile) => encodeOtlp(profile, { scopeName: 'everyframe', scopeVersion: '' }),
  },
];

function formatOf(fileName: string): Format {
  const format = FORMATS.find(({ endings }) => endings.some((ending) => fileName.endsWith(ending)));
  if (format) return format;
  const endings = FORMATS.flatMap((f) => f.endings).join(', ');
  throw new Error(`${fileName}: its ending names no known format: use one of ${endings}`);
}

/** @throws Error naming the known formats where the name has none of their endings */
export const checkFormat = (fileName: string): void => void formatOf(fileName);

/** @throws Error that names the file and what is wrong with it */
export function readProfile(fileName: string, bytes: Uint8Array): Profile {
  const format = formatOf(fileName);
  try {
    return format.read(bytes);
  } catch (error) {
    throw new Error(`${fileName} is no ${format.endings[0]} profile: ${(error as Error).message}`);
  }
}

export const writeProfile = (fileName: string, profile: Profile): Uint8Array =>
  formatOf(fileName).write(profile);
