/** Profiles from and to files, by the ending of their names: common's formats, and the page of one profile. */
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { makePage, makeSvg } from '../collector/api/pictures.ts';
import { checkFormat, readProfile, writableEndings, writeProfile } from '../common/profile/formats.ts';
import type { Profile } from '../common/profile/profile.ts';

const PICTURES: Record<string, (title: string, profile: Profile) => string> = {
  '.html': makePage,
  '.svg': makeSvg,
};

const pictureEnding = (fileName: string): string | undefined =>
  Object.keys(PICTURES).find((ending) => fileName.endsWith(ending));

export const outputEndings = (): string => [writableEndings(), ...Object.keys(PICTURES)].join(', ');

/**
 * Before something is recorded that could not be kept.
 *
 * @throws Error that names the endings there are, or says why the file can't be written
 */
export function checkOutput(fileName: string): void {
  if (pictureEnding(fileName) === undefined) checkFormat(fileName, Object.keys(PICTURES));
  try {
    accessSync(existsSync(fileName) ? fileName : dirname(fileName), constants.W_OK);
  } catch (error) {
    throw new Error(`${fileName} can't be written: ${(error as Error).message}`);
  }
}

export function loadProfile(fileName: string): Profile {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(fileName);
  } catch (error) {
    throw new Error(`${fileName} can't be read: ${(error as Error).message}`);
  }
  return readProfile(fileName, bytes);
}

export function saveProfile(fileName: string, profile: Profile): void {
  const ending = pictureEnding(fileName);
  writeFileSync(
    fileName,
    ending === undefined
      ? writeProfile(fileName, profile)
      : PICTURES[ending]!(basename(fileName, ending), profile),
  );
}
