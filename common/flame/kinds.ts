import { FRAME_TYPES } from '../profile/model/frame-types.ts';
import type { FrameKind } from './frame-kind.ts';

interface KindStyle {
  label: string;
  /** Degrees in OKLCH; undefined: grey. */
  hue: number | undefined;
  chroma?: number;
}

const KINDS: Record<FrameKind, KindStyle> = {
  ...FRAME_TYPES,
  root: { label: 'all', hue: undefined },
  process: { label: 'process', hue: undefined },
  unknown: { label: 'unknown', hue: undefined },
  other: { label: 'not loaded', hue: undefined },
};

/** A newer server may know more kinds than this page. */
export const toKind = (text: string): FrameKind =>
  Object.hasOwn(KINDS, text) ? (text as FrameKind) : 'unknown';

export const kindLabel = (kind: FrameKind): string => KINDS[kind].label;

const LEVELS: Partial<Record<FrameKind, { light: number; dark: number }>> = {
  root: { light: 0.9, dark: 0.34 },
  process: { light: 0.86, dark: 0.4 },
  other: { light: 0.94, dark: 0.29 },
};

/** Shades of one kind, so that neighbours can be told apart: the name picks the shade. */
export const SHADES = 5;

const CHROMA = 0.075;

export interface Oklch {
  lightness: number;
  chroma: number;
  /** Degrees. */
  hue: number;
}

/** Fill of a box. Lightness keeps text at a contrast of 5.8:1 (dark) and 8.7:1 (light) or more. */
export function kindFill(kind: FrameKind, shade: number, dark: boolean): Oklch {
  const { hue, chroma = CHROMA } = KINDS[kind];
  const level = LEVELS[kind] ?? { light: 0.85, dark: 0.44 };
  const step = (shade - (SHADES - 1) / 2) * (hue === undefined ? 0.006 : 0.014);
  const lightness = (dark ? level.dark : level.light) + step;
  if (hue === undefined) return { lightness, chroma: 0.008, hue: 255 };
  return { lightness, chroma: chroma * (dark ? 0.9 : 1), hue };
}

export function kindColour(kind: FrameKind, shade: number, dark: boolean): string {
  const { lightness, chroma, hue } = kindFill(kind, shade, dark);
  return `oklch(${lightness.toFixed(3)} ${chroma} ${hue})`;
}

/** Fill of a box by the name of its library, as far from others as a hash of names brings it; see kindFill. */
export function libraryColour(library: string, shade: number, dark: boolean): string {
  const hash = hashText(library);
  const step = (shade - (SHADES - 1) / 2) * 0.014;
  const lightness = (dark ? 0.44 : 0.85) + step;
  const chroma = (hash & 1 ? 0.08 : 0.05) * (dark ? 0.9 : 1);
  return `oklch(${lightness.toFixed(3)} ${chroma.toFixed(4)} ${(hash >>> 1) % 360})`;
}

/** A name's own shade, from 0 to SHADES - 1. */
export function shadeOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i);
  return (hash >>> 8) % SHADES;
}

/** FNV-1a with the finalizer of MurmurHash3: names that differ in one letter are to differ in hue. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}
