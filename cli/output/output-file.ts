/** Files that commands write: whole or not at all, and never over something that nobody said may go. */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { inWords } from '../../common/base/system-error.ts';
import type { Written } from '../../common/profile/formats/formats.ts';

export const STDOUT = '-';
/** Lines are gathered up to that many characters. */
const BATCH = 1 << 16;

const statOf = (file: string): Stats | undefined => statSync(file, { throwIfNoEntry: false });

/** Standard output, a pipe or a device: written to as it is, in a format that its name does not say. */
export function isStream(file: string): boolean {
  if (file === STDOUT) return true;
  try {
    const stats = statOf(file);
    return stats !== undefined && !stats.isFile() && !stats.isDirectory();
  } catch {
    return false;
  }
}

export interface OutputFlags {
  /** What is there may be replaced. */
  force?: boolean | undefined;
  /** Permissions of a new file, of which the process's mask is taken. */
  mode?: number | undefined;
}

/**
 * Before work is done whose result could not be kept.
 *
 * @param inputs files that are never written to, whatever the flags
 * @throws Error that says why the file can't be written, and what to do
 */
export function checkOutputFile(file: string, { force }: OutputFlags, inputs: readonly string[] = []): void {
  if (file === STDOUT) return;
  let stats: Stats | undefined;
  try {
    stats = statOf(file);
    accessSync(stats && !stats.isFile() ? file : dirname(stats ? realpathSync(file) : file), constants.W_OK);
    if (stats?.isFile() && force) accessSync(file, constants.W_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new Error(`${file} can't be written: there is no directory ${dirname(file)}`);
    throw cannotWrite(file, error);
  }
  if (!stats) return;
  if (stats.isDirectory()) throw new Error(`${file} is a directory: name a file in it`);
  if (inputs.some((input) => isSame(input, stats)))
    throw new Error(`${file} is an input, which is never overwritten: give the output another name`);
  if (stats.isFile() && !force)
    throw new Error(`${file} exists: give --force to overwrite it, or another name`);
}

function isSame(input: string, { dev, ino }: Stats): boolean {
  if (input === STDOUT) return false;
  const stats = statOf(input);
  return stats?.isFile() === true && stats.dev === dev && stats.ino === ino;
}

const cannotWrite = (file: string, error: unknown): Error =>
  new Error(`${file === STDOUT ? 'standard output' : file} can't be written: ${inWords(error)}`);

/** @throws Error that names the file and says why it can't be written; then what was there is as it was */
export async function writeOutput(
  file: string,
  content: Written,
  { force, mode }: OutputFlags = {},
): Promise<void> {
  if (file === STDOUT) return toStdout(content);
  try {
    if (isStream(file)) toDescriptor(openSync(file, 'w'), content);
    else toFile(file, content, force === true, mode);
  } catch (error) {
    throw error instanceof Kept ? error : cannotWrite(file, error);
  }
}

/** A file of that name has come meanwhile; what was made is not lost. */
class Kept extends Error {}

/** Under another name until it is whole, in the same directory, so that renaming it is one step. */
function toFile(file: string, content: Written, isForced: boolean, mode?: number): void {
  const target = statOf(file) ? realpathSync(file) : file;
  const waiting = join(dirname(target), `.${basename(target)}.${randomUUID().slice(0, 8)}.part`);
  const fd = openSync(waiting, 'wx', mode);
  try {
    toDescriptor(fd, content);
    if (isForced) renameSync(waiting, target);
    else moveToNew(waiting, target);
  } catch (error) {
    if (!(error instanceof Kept)) rmSync(waiting, { force: true });
    throw error;
  }
}

function moveToNew(waiting: string, target: string): void {
  try {
    linkSync(waiting, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST')
      throw new Kept(
        `${target} exists by now and was left as it is: what was to be written there is in ${waiting}`,
      );
    // not every file system has hard links
    renameSync(waiting, target);
    return;
  }
  rmSync(waiting);
}

/** Closes it. */
function toDescriptor(fd: number, content: Written): void {
  try {
    for (const bytes of batches(content)) {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    }
    // an error of the disk shows here at the latest, and not after the old file is gone
    if (fstatSync(fd).isFile()) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

async function toStdout(content: Written): Promise<void> {
  for (const bytes of batches(content)) {
    if (!process.stdout.write(bytes))
      await new Promise((resolve) => void process.stdout.once('drain', resolve));
  }
}

/** Text to standard output, however long. */
export const printText = (lines: Iterable<string>): Promise<void> => toStdout(lines);

function* batches(content: Written): Generator<Uint8Array> {
  if (content instanceof Uint8Array) {
    yield content;
    return;
  }
  let text = '';
  for (const part of content) {
    text += part;
    if (text.length < BATCH) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text !== '') yield Buffer.from(text);
}
