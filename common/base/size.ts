const UNITS: Record<string, number> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

/** Bytes of `512MiB`, `512M`, `1.5G`, or a bare number of bytes; NaN if it is none of these. */
export function parseBytes(text: string): number {
  const match = /^(\d{1,15}(?:\.\d{1,9})?)\s*([KMG]?)(?:i?B)?$/i.exec(text.trim());
  return match === null ? Number.NaN : Math.floor(Number(match[1]) * UNITS[match[2]!.toUpperCase()]!);
}
