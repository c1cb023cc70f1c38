/** How reports write shares, counts and columns. */
import type { ProfileType } from '../model/profile-type.ts';
import { valueFormatter } from '../model/value-format.ts';

/** What a report leaves out. */
export interface ReportCut {
  /** Lines at most. */
  top?: number | undefined;
  /** Smaller shares of all samples are summed up in one line; 0 to 1. */
  minShare?: number | undefined;
  /** What the samples of the whole file add up to, of which these are a part. */
  fileTotal?: number | undefined;
}

export const DEFAULT_MIN_SHARE = 0.001;

/** Two digits that matter: `80%`, `12.5%`, `0.04%`. */
export function formatShare(part: number): string {
  const percent = part * 100;
  if (percent >= 99.95 || percent === 0) return `${Math.round(percent)}%`;
  const digits = percent >= 1 ? 1 : Math.min(4, 1 - Math.floor(Math.log10(percent)));
  return `${Number(percent.toFixed(digits))}%`;
}

export const share = (part: number, of: number): string => formatShare(of === 0 ? 0 : part / of);

/** `12,345`. */
export const groupDigits = (count: number): string => count.toLocaleString('en');

/** The first line: `131 samples, 4 stacks`, or `57 of 131 samples, 4 stacks`. */
export function headLine({ sampleType }: ProfileType, sum: number, rows: string, fileTotal = sum): string {
  const format = valueFormatter(sampleType);
  const part = sum === fileTotal ? '' : `${format.cell(sum)} of `;
  return `${part}${format.of(fileTotal)}, ${rows}\n`;
}

/** `1 stack`, `1,234 stacks`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${groupDigits(count)} ${count === 1 ? one : many}`;

/** Two numbers to the right, and a text. */
export const columns = (first: string, second: string, text: string): string =>
  `${first.padStart(7)} ${second.padStart(7)}  ${text}\n`;

/** Functions read as calls; addresses and markers stay as they are. */
export const asCall = (name: string): string => (/[()[\]+]/.test(name) ? name : `${name}()`);

/** For JSON: a millionth is less than any profile can tell. */
export const roundShare = (part: number): number =>
  Number.isFinite(part) ? Math.round(part * 1e6) / 1e6 : 0;
