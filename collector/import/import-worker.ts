/**
 * Reads one file of a stranger in a process of its own: the file on standard input, a JSON argument for what is known of it,
 * and on standard output a byte (0: a profile as OTLP follows, 1: a sentence why not), then ends.
 */
import { writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import {
  formatByContent,
  isNamedByFormat,
  type ReadOptions,
  readProfiles,
} from '../../common/profile/formats/formats.ts';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import { yieldToOthers } from '../workers/yield-to-others.ts';
import { MAX_IMPORTED_BYTES } from './limits.ts';
import { type Placement, placeProfiles } from './place.ts';

export interface ImportFile {
  fileName: string;
  placement: Placement;
}

const MAX_UNPACKED_BYTES = 256 * 2 ** 20;
const SNIFF_BYTES = 1 << 16;
const STDOUT = 1;
/** What `report` and `convert` say; here no flag does. */
const FLAG_ADVICE = /--from FORMAT says what it is/;
const NAME_ADVICE = "give it a name with its format's ending, such as .pb.gz or .folded";

function read({ fileName, placement }: ImportFile, bytes: Uint8Array): Uint8Array {
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const plain = isGzip ? unpack(fileName, bytes) : bytes;
  const { profiles } = readProfiles(fileName, plain, formatOf(fileName, plain));
  placeProfiles(profiles, placement);
  if (profiles.every(({ samples }) => samples.length === 0)) throw new Error(`${fileName} holds no samples`);
  const encoded = encodeOtlp(profiles, { scopeName: 'everyframe', scopeVersion: '' });
  if (encoded.length > MAX_IMPORTED_BYTES)
    throw new Error(
      `${fileName} holds ${encoded.length} bytes of stacks and samples: at most ${MAX_IMPORTED_BYTES} are taken, cut it by time`,
    );
  return encoded;
}

/** By its content, where its name says nothing. */
function formatOf(fileName: string, bytes: Uint8Array): ReadOptions {
  if (isNamedByFormat(fileName)) return {};
  return { from: formatByContent(fileName, bytes.subarray(0, SNIFF_BYTES)), isGuess: true };
}

/** Here and not in the readers, which take what a person's own command gives them. */
function unpack(fileName: string, bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'ERR_BUFFER_TOO_LARGE' ? `it unpacks to more than ${MAX_UNPACKED_BYTES} bytes` : message;
    throw new Error(`${fileName} can't be unpacked: ${why}`);
  }
}

const write = (kind: number, bytes: Uint8Array): void =>
  writeFileSync(STDOUT, Buffer.concat([Buffer.from([kind]), bytes]));

yieldToOthers();
const bytes = await buffer(process.stdin);
try {
  write(0, read(JSON.parse(process.argv[2]!) as ImportFile, bytes));
} catch (error) {
  write(1, Buffer.from((error as Error).message.replace(FLAG_ADVICE, NAME_ADVICE)));
}
