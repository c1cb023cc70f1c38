/** Settings from several places, one over the other. */
import { type Setting, settingName } from './setting.ts';

/** One place that settings come from. */
export interface SettingLayer {
  /** By the setting's name. */
  values: Record<string, unknown>;
  /** What a person knows a value's place by: a flag, a variable, a line of a file. */
  origin(name: string): string;
}

export interface LayeredSettings {
  values: Record<string, unknown>;
  origins: Record<string, string>;
}

/** @param layers the weakest first; what is undefined says nothing */
export function mergeLayers(layers: readonly SettingLayer[]): LayeredSettings {
  const merged: LayeredSettings = { values: {}, origins: {} };
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer.values)) {
      if (value === undefined) continue;
      merged.values[name] = value;
      merged.origins[name] = layer.origin(name);
    }
  }
  return merged;
}

export type Environment = Record<string, string | undefined>;

/** As Go reads it, and a person who writes yes. */
const isTrue = (text: string): boolean => /^(?:1|t|true|yes)$/i.test(text.trim());

/** Of variables PREFIX_MAX_MEMORY, the first prefix that has one. */
export function environmentLayer(
  settings: readonly Setting[],
  env: Environment,
  prefixes: readonly string[],
): SettingLayer {
  const values: Record<string, unknown> = {};
  const origins: Record<string, string> = {};
  for (const { flag, value, repeatable } of settings) {
    const end = flag.toUpperCase().replaceAll('-', '_');
    const variable = prefixes.map((prefix) => prefix + end).find((each) => env[each] !== undefined);
    const text = variable === undefined ? undefined : env[variable];
    if (text === undefined) continue;
    const name = settingName(flag);
    origins[name] = variable!;
    if (repeatable) values[name] = text.split(',');
    else values[name] = value === undefined ? isTrue(text) : text;
  }
  return { values, origin: (name) => origins[name]! };
}

/** What is wrong with a setting, after the place it comes from, unless its own words have that: a flag. */
export const withOrigin = (origin: string | undefined, message: string): string =>
  origin === undefined || origin === 'default' || origin.startsWith('--') ? message : `${origin}: ${message}`;

/** A layer that says nothing of some settings. */
export const withoutSettings = (layer: SettingLayer, names: ReadonlySet<string>): SettingLayer => ({
  values: Object.fromEntries(Object.entries(layer.values).filter(([name]) => !names.has(name))),
  origin: (name) => layer.origin(name),
});
