/** A directory that later runs believe. */
import { lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Makes it if need be. Throws where it can't be made, or others may write to it. */
export function makeCacheDirectory(path: string): void {
  makeDirectory(path);
  const { uid, mode } = lstatSync(path);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0)
    throw new Error(
      `${path} belongs to somebody else, or others may write to it: what is in it can't be trusted. Name another directory`,
    );
}

/** With its parents. Node's own way never ends below /proc, where what it is told to make does not come to be. */
export function makeDirectory(path: string): void {
  const whole = resolve(path);
  if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(whole) !== whole) makeDirectory(dirname(whole));
  try {
    mkdirSync(whole, { mode: 0o700 });
  } catch (error) {
    // somebody else was first
    if (!statSync(whole, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
