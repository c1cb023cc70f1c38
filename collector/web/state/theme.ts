import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { kindColour, libraryColour, shadeOf } from '../../../common/flame/kinds.ts';

/** Colours of the canvas; the rest of the page has them in styles.css. */
export interface Theme {
  dark: boolean;
  background: string;
  text: string;
  faintText: string;
  /** Boxes that a search leaves aside, and those that it found. */
  dimmed: string;
  dimmedText: string;
  match: string;
  matchText: string;
  ring: string;
  hover: string;
  fill(kind: FrameKind, name: string): string;
  /** The same by library. */
  libraryFill(library: string, name: string): string;
  /** Fill of a box that grew (up to 1) or shrank (down to -1). */
  growth(change: number): string;
}

const MAX_FILLS = 10_000;

/** Growth is told apart in so many steps on each side. */
const GROWTH_STEPS = 8;

function growthColour(change: number, dark: boolean): string {
  const step = Math.round(Math.abs(change) * GROWTH_STEPS) / GROWTH_STEPS;
  const lightness = dark ? 0.34 + 0.12 * step : 0.94 - 0.14 * step;
  return `oklch(${lightness.toFixed(3)} ${(0.135 * step).toFixed(3)} ${change > 0 ? 30 : 250})`;
}

export function makeTheme(dark: boolean): Theme {
  const fills = new Map<string, string>();
  const fill = (kind: FrameKind, name: string): string => {
    const shade = shadeOf(name);
    const key = `${kind}${shade}`;
    let colour = fills.get(key);
    if (colour === undefined) {
      colour = kindColour(kind, shade, dark);
      fills.set(key, colour);
    }
    return colour;
  };
  const libraryFill = (library: string, name: string): string => {
    const shade = shadeOf(name);
    const key = `${library}\0${shade}`;
    let colour = fills.get(key);
    if (colour === undefined) {
      // names of libraries are strangers'
      if (fills.size > MAX_FILLS) fills.clear();
      colour = libraryColour(library, shade, dark);
      fills.set(key, colour);
    }
    return colour;
  };
  const growth = (change: number): string => growthColour(change, dark);
  return dark
    ? {
        dark,
        fill,
        libraryFill,
        growth,
        background: '#15181d',
        text: '#eef1f5',
        faintText: '#a9b2be',
        dimmed: '#242930',
        dimmedText: '#7d8794',
        match: 'oklch(0.8 0.14 85)',
        matchText: '#1b1604',
        ring: '#ffffff',
        hover: 'rgb(255 255 255 / 0.14)',
      }
    : {
        dark,
        fill,
        libraryFill,
        growth,
        background: '#ffffff',
        text: '#1c2430',
        faintText: '#59636f',
        dimmed: '#eef0f3',
        dimmedText: '#6c7581',
        match: 'oklch(0.86 0.16 88)',
        matchText: '#2a2103',
        ring: '#10151c',
        hover: 'rgb(16 24 40 / 0.09)',
      };
}
