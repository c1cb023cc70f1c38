/** Profiles from and to files, by the ending of their names: common's formats, and the page of one profile. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { flameGraphResponse } from '../collector/api/responses.ts';
import { profileGraph } from '../collector/query/profile-graph.ts';
import { buildModel } from '../collector/web/flame-model.ts';
import { flameSvg } from '../collector/web/flame-svg.ts';
import { checkFormat, readProfile, writableEndings, writeProfile } from '../common/profile/formats.ts';
import type { Profile } from '../common/profile/profile.ts';

/** Built by scripts/build-web.mjs. This file runs from dist/cli, and in tests from cli. */
const SHELL = ['../build/', '../../build/']
  .map((folder) => new URL(`${folder}standalone.html`, import.meta.url))
  .find(existsSync);

/** Boxes of a .svg, which a browser holds all at once; what is smaller is told in the picture. */
const SVG_LIMITS = { minFraction: 1 / 20_000, maxNodes: 3000 };

const PICTURES: Record<string, (title: string, profile: Profile) => string> = {
  '.html': makePage,
  '.svg': (title, profile) =>
    flameSvg(buildModel(flameGraphResponse(profileGraph(profile, SVG_LIMITS))), title),
};

const pictureEnding = (fileName: string): string | undefined =>
  Object.keys(PICTURES).find((ending) => fileName.endsWith(ending));

export const outputEndings = (): string => [writableEndings(), ...Object.keys(PICTURES)].join(', ');

/** @throws Error that names the endings there are */
export function checkOutput(fileName: string): void {
  if (pictureEnding(fileName) === undefined) checkFormat(fileName, Object.keys(PICTURES));
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

/** Names come from strangers: in the page's data no `<` may end the element that holds it. */
function makePage(title: string, profile: Profile): string {
  const data = JSON.stringify(flameGraphResponse(profileGraph(profile))).replaceAll('<', '\\u003c');
  const escaped = title.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  if (SHELL === undefined) throw new Error('build/standalone.html is missing: run make');
  return readFileSync(SHELL, 'utf8')
    .replace('<title>everyframe</title>', () => `<title>${escaped}</title>`)
    .replace('id="profile">{}<', () => `id="profile">${data}<`);
}
