/** Hues of the timeline's areas, neighbours far apart. */
const HUES = [255, 45, 150, 320, 95, 200, 15, 285, 120];

/** Fill of the area at a place of the palette; undefined: of all others. */
export function areaColour(place: number | undefined, isDark: boolean): string {
  if (place === undefined) return isDark ? 'oklch(0.45 0.01 255)' : 'oklch(0.82 0.01 255)';
  const lightness = (isDark ? 0.62 : 0.74) - (place >= HUES.length ? 0.1 : 0);
  return `oklch(${lightness} 0.11 ${HUES[place % HUES.length]})`;
}
