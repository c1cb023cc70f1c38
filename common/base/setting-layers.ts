/** Settings from several places, one over the other. */

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
  for (const { values, origin } of layers) {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) continue;
      merged.values[name] = value;
      merged.origins[name] = origin(name);
    }
  }
  return merged;
}
