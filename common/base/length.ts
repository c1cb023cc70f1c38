const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `90s`, `15m`, `6h`, `7d`; undefined for what is not a length of time, and for less than a millisecond. */
export function parseLength(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  const ms = match === null ? 0 : Number(match[1]) * UNIT_MS[match[2]!]!;
  return ms >= 1 ? ms : undefined;
}
