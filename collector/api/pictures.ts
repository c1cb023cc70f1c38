/** One profile as a file that a browser opens from disk: a page that zooms and finds, or a picture. */
import { existsSync, readFileSync } from 'node:fs';
import { buildModel } from '../../common/flame/flame-model.ts';
import { flameSvg } from '../../common/flame/flame-svg.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { profileGraph } from '../query/flame/profile-graph.ts';
import { flameGraphResponse } from './responses.ts';

/**
 * Built by scripts/build-web.mjs. This file runs from dist/collector/api, and in tests from collector/api. It is read
 * at once: a collector may give up the right to read its own checkout.
 */
const SHELL = ['../../build/', '../../../build/']
  .map((folder) => new URL(`${folder}standalone.html`, import.meta.url))
  .filter(existsSync)
  .map((file) => readFileSync(file, 'utf8'))[0];

/** Boxes of a page that asks nobody: all of them, unless those are more than a browser holds with ease. */
const PAGE_LIMITS = { minFraction: 0, maxNodes: 100_000 };
/** Boxes of a .svg, which a browser holds all at once; what is smaller is told in the picture. */
const SVG_LIMITS = { minFraction: 1 / 20_000, maxNodes: 3000 };

export const makeSvg = (title: string, profile: Profile): string =>
  flameSvg(buildModel(flameGraphResponse(profileGraph(profile, SVG_LIMITS))), title);

/**
 * Names come from strangers: in the page's data no `<` may end the element that holds it.
 *
 * @throws Error if the page is not built
 */
export function makePage(title: string, profile: Profile): string {
  const data = JSON.stringify(flameGraphResponse(profileGraph(profile, PAGE_LIMITS))).replaceAll(
    '<',
    '\\u003c',
  );
  const escaped = title.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  if (SHELL === undefined) throw new Error('build/standalone.html is missing: run make');
  return SHELL.replace('<title>everyframe</title>', () => `<title>${escaped}</title>`).replace(
    'id="profile">{}<',
    () => `id="profile">${data}<`,
  );
}
