import { describe, expect, it } from 'vitest';
import { flameGraphResponse } from '../../collector/api/responses.ts';
import { profileGraph } from '../../collector/query/flame/profile-graph.ts';
import { readFolded } from '../profile/formats/folded.ts';
import { buildModel } from './flame-model.ts';
import { flameSvg } from './flame-svg.ts';
import { toHex } from './svg-style.ts';

const svgOf = (folded: string, maxNodes = 1000): string => {
  const profile = readFolded(folded);
  const graph = profileGraph(profile, { minFraction: 0, maxNodes });
  return flameSvg(buildModel(flameGraphResponse(graph)), 'a & <b>');
};

/** `left–right name`, as the attributes alone have it. */
const boxesOf = (svg: string): string[] =>
  [...svg.matchAll(/<rect class="[^"]*" x="([^"]*)" y="[^"]*" width="([^"]*)".*\n?<text[^>]*>([^<]*)/g)].map(
    ([, x, width, name]) => `${x} +${width} ${name}`,
  );

describe('a flame graph as .svg', () => {
  const SVG = svgOf('app;main;parse 60\napp;main;write;main;vfs_write_[k] 30\nsh;fork 10\n');

  it('has a box a node, in shares of the whole', () => {
    expect(boxesOf(SVG)).toEqual([
      '0% +100% all',
      '0% +90% app',
      '90% +10% sh',
      '0% +90% main',
      '90% +10% fork',
      '0% +60% parse',
      '60% +30% write',
      '60% +30% main',
      '60% +30% vfs_write',
    ]);
  });

  it('zooms by address: each box links to the rule that makes it as wide as the picture', () => {
    expect(SVG).toContain('#z2:target~#boxes{--from:0.9;--scale:10}');
    expect(SVG).toMatch(/<a href="#z2"><g class="box" style="--left:0.9;--right:1"><title>sh\nprocess\n/);
    expect(SVG).toContain('<g id="z2" display="none"/>');
  });

  it('finds functions by address, and counts recursion once', () => {
    const [, id] = /<g id="(f\d+)" class="found"[^>]*>.*>main: 90\.0 % of the samples, in 2 boxes</.exec(
      SVG,
    )!;
    expect(SVG.match(new RegExp(`<rect class="native-\\d ${id}"`, 'g'))).toHaveLength(2);
    expect(SVG).toContain(`#${id}:target~#boxes rect.${id}{fill:var(--match)}`);
  });

  it('has no script, and loads nothing', () => {
    expect(SVG).not.toMatch(/<script|<foreignObject| on\w+=|javascript:|url\(|@import/i);
    expect([...SVG.matchAll(/(?:href|src)="([^"]*)"/g)].every(([, to]) => to!.startsWith('#'))).toBe(true);
  });

  it('says what was cut', () => {
    const lines = Array.from({ length: 50 }, (_, i) => `app;f${i};g${i} ${i + 1}\n`).join('');
    expect(svgOf(lines)).not.toContain('not in this picture');
    expect(svgOf(lines, 12)).toMatch(/45 boxes are not in this picture: 81\.2 % of the samples end there/);
    expect(boxesOf(svgOf(lines, 12)).length).toBeLessThan(20);
  });

  it('lets no name become markup, or a character that XML has no place for', () => {
    const svg = svgOf('app;</title><script>alert(1)</script>&"\u0000\u001b\uffff 3\n');
    expect(svg).not.toMatch(/<script|&"|<\/title><script/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(svg).not.toMatch(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/);
    expect(svg).toContain('&#60;script&#62;alert(1)');
  });

  it('draws an empty profile', () => {
    expect(boxesOf(svgOf(''))).toEqual(['0% +0% all']);
    expect(svgOf('')).not.toMatch(/NaN|Infinity/);
  });
});

describe('toHex', () => {
  // by CSS Color 4's sample code: oklch(0.628 0.2577 29.23) is red
  it.each([
    [{ lightness: 1, chroma: 0, hue: 0 }, '#ffffff'],
    [{ lightness: 0, chroma: 0, hue: 0 }, '#000000'],
    [{ lightness: 0.62796, chroma: 0.25768, hue: 29.234 }, '#ff0000'],
    [{ lightness: 0.86644, chroma: 0.29483, hue: 142.495 }, '#00ff00'],
    [{ lightness: 0.45201, chroma: 0.31321, hue: 264.052 }, '#0000ff'],
  ])('%o is %s', (colour, hex) => {
    expect(toHex(colour)).toBe(hex);
  });
});
