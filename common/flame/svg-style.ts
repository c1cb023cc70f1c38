/**
 * Colours and rules of a flame graph as .svg. Colours are in sRGB's hex form, which programs that draw SVG without
 * being browsers know too.
 */
import type { FrameKind } from './frame-kind.ts';
import { kindFill, type Oklch, shadeOf } from './kinds.ts';

/**
 * What moves when a box is zoomed into: `--from` is the left edge in sight and `--scale` how many times wider than
 * the whole picture it is; each box knows its own edges, `--left` and `--right`, as shares of the whole, and gets
 * those in sight, `--start` and `--end`. Labels are moved and cut with it; without room for them they vanish.
 */
const LAYOUT = `
#everyframe{min-width:100%;background:var(--paper);--from:0;--scale:1;--paper:#fff;--ink:#1c2430;--soft:#59636f;--link:#2f62c9;--match:#f5c842;--dim:#eef0f3}
text{fill:var(--ink);white-space:pre}
.soft{fill:var(--soft)}
.link{fill:var(--link)}
.link:hover{text-decoration:underline}
.box{--start:max(0,(var(--left) - var(--from))*var(--scale));--end:min(1,(var(--right) - var(--from))*var(--scale));--width:max(0,var(--end) - var(--start))}
.box rect{x:calc(var(--start)*100%);width:calc(var(--width)*100%);stroke:var(--paper)}
.box text{display:inline;pointer-events:none;fill-opacity:clamp(0,(var(--width) - .012)*99999,1);transform-box:view-box;transform:translateX(calc((var(--start) - var(--left))*100%));clip-path:inset(0 calc((1 - var(--left) - var(--width))*100%) 0 0) view-box}
a:hover>.box rect,a:focus-visible>.box rect{stroke:var(--ink)}
a:focus{outline:none}
.found:target{display:inline}
.found:target~#hint{display:none}
.found:target~#boxes rect{fill:var(--dim)}
`;

const DARK =
  '#everyframe{--paper:#15181d;--ink:#eef1f5;--soft:#a9b2be;--link:#8ab4ff;--match:#8a6d00;--dim:#242930}';

export interface Zoom {
  id: string;
  from: number;
  scale: number;
}

/** One of a kind's shades, by name. */
export const fillClass = (kind: FrameKind, name: string): string => `${kind}-${shadeOf(name)}`;

/**
 * @param fills the classes that occur
 * @param zooms of the boxes: which part of the picture each shows
 * @param finds classes of functions: each is also the ID of its element
 */
export function svgStyle(
  fills: ReadonlyMap<string, FrameKind>,
  zooms: readonly Zoom[],
  finds: readonly string[],
): string {
  const colours = (dark: boolean): string =>
    [...fills].map(([name, kind]) => `.${name}{fill:${fillHex(name, kind, dark)}}\n`).join('');
  const views = zooms.map(({ id, from, scale }) => `#${id}:target~#boxes{--from:${from};--scale:${scale}}\n`);
  // after the colours and as specific as the rule that dims the rest, so that these win
  const found = finds.map((id) => `#${id}:target~#boxes rect.${id}{fill:var(--match)}\n`);
  return [
    LAYOUT,
    colours(false),
    `@media (prefers-color-scheme:dark){${DARK}\n${colours(true)}}\n`,
    ...views,
    ...found,
  ].join('');
}

const fillHex = (name: string, kind: FrameKind, dark: boolean): string =>
  toHex(kindFill(kind, Number(name.slice(-1)), dark));

/** https://bottosson.github.io/posts/oklab, then sRGB's transfer curve; what lies outside of sRGB is clipped. */
export function toHex({ lightness, chroma, hue }: Oklch): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const bytes = linear.map((value) => {
    const encoded = value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
    return Math.round(Math.min(1, Math.max(0, encoded)) * 255);
  });
  return `#${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
