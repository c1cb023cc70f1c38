/** Colours of what threads do: one for each state, the same in every view. */

interface StateColour {
  hue: number;
  chroma: number;
  light: number;
  dark: number;
}

const strong = (hue: number): StateColour => ({ hue, chroma: 0.12, light: 0.72, dark: 0.62 });

/** Who sleeps or waits for a client is calm; who waits for a lock or a CPU is what one looks for. */
const COLOURS: Readonly<Record<string, StateColour>> = {
  running: strong(150),
  runnable: { ...strong(85), light: 0.82, dark: 0.7 },
  'blocked:disk': strong(300),
  'blocked:lock': { hue: 27, chroma: 0.16, light: 0.66, dark: 0.6 },
  'blocked:network': { hue: 245, chroma: 0.07, light: 0.82, dark: 0.47 },
  'blocked:sleep': { hue: 255, chroma: 0.01, light: 0.89, dark: 0.33 },
  'blocked:page-fault': strong(345),
  'blocked:other': { hue: 200, chroma: 0.05, light: 0.72, dark: 0.5 },
};

/** Undefined: it is none of the agent's states. */
export function stateColour(state: string, isDark: boolean): string | undefined {
  const colour = Object.hasOwn(COLOURS, state) ? COLOURS[state] : undefined;
  return colour && `oklch(${isDark ? colour.dark : colour.light} ${colour.chroma} ${colour.hue})`;
}

/** `blocked:page-fault` for people. */
export const stateLabel = (state: string): string => state.replace('blocked:', '').replace('-', ' ');
