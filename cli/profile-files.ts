/** Profiles from and to files, by the ending of their names: common's formats, and the page of one profile. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { makePage, makeSvg } from '../collector/api/pictures.ts';
import { checkFormat, readProfile, writableEndings, writeProfile } from '../common/profile/formats.ts';
import type { Profile } from '../common/profile/profile.ts';

const PICTURES: Record<string, (title: string, profile: Profile) => string> = {
  '.html': makePage,
  '.svg': makeSvg,
};

/** Of a pipe, whose end nobody knows. */
const MAX_PIPE_BYTES = 1 << 30;
const CHUNK_BYTES = 1 << 20;

const pictureEnding = (fileName: string): string | undefined =>
  Object.keys(PICTURES).find((ending) => fileName.endsWith(ending));

export const outputEndings = (): string => [writableEndings(), ...Object.keys(PICTURES)].join(', ');

/**
 * Before something is recorded that could not be kept.
 *
 * @throws Error that names the endings there are, or says why the file can't be written
 */
export function checkOutput(fileName: string): void {
  refuseDash(fileName, 'written');
  if (pictureEnding(fileName) === undefined) checkFormat(fileName, Object.keys(PICTURES));
  try {
    accessSync(existsSync(fileName) ? fileName : dirname(fileName), constants.W_OK);
  } catch (error) {
    throw new Error(`${fileName} can't be written: ${(error as Error).message}`);
  }
}

/** @throws Error that names the file and says why it can't be read, or what is wrong with it */
export function loadProfile(fileName: string): Profile {
  refuseDash(fileName, 'read');
  let bytes: Uint8Array;
  try {
    bytes = readBytes(fileName);
  } catch (error) {
    throw new Error(`${fileName} can't be read: ${(error as Error).message}`);
  }
  return readProfile(fileName, bytes);
}

/** @throws Error that names the file and says why it can't be written */
export function saveProfile(fileName: string, profile: Profile): void {
  const ending = pictureEnding(fileName);
  const content =
    ending === undefined
      ? writeProfile(fileName, profile)
      : PICTURES[ending]!(basename(fileName, ending), profile);
  try {
    writeFileSync(fileName, content);
  } catch (error) {
    throw new Error(`${fileName} can't be written: ${(error as Error).message}`);
  }
}

function refuseDash(fileName: string, done: string): void {
  if (fileName === '-')
    throw new Error(`"-" has no ending that tells the format: name a file that is to be ${done}`);
}

function readBytes(fileName: string): Uint8Array {
  const fd = openSync(fileName, 'r');
  try {
    const file = fstatSync(fd);
    if (file.isFile()) return readFileSync(fd);
    if (file.isFIFO()) return readPipe(fd);
    throw new Error(file.isDirectory() ? 'it is a directory' : 'it is a device');
  } finally {
    closeSync(fd);
  }
}

function readPipe(fd: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (let size = 0; size <= MAX_PIPE_BYTES; size += chunks.at(-1)!.length) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const read = readSync(fd, chunk);
    if (read === 0) return Buffer.concat(chunks);
    // a copy: a pipe gives a small part of a chunk at a time
    chunks.push(chunk.length === read ? chunk : Buffer.from(chunk.subarray(0, read)));
  }
  throw new Error('more than 1 GiB comes out of it');
}
