const INTEGER = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const formatCount = (value: number): string => INTEGER.format(value);

/** A share of 1 as a percentage with the digits that its size deserves. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (!Number.isFinite(percent) || percent === 0) return '0 %';
  if (percent < 0.01) return '< 0.01 %';
  if (percent < 1) return `${percent.toFixed(2)} %`;
  return percent >= 99.95 ? '100 %' : `${percent.toFixed(1)} %`;
}

const CPUS = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

/** Busy CPUs, with the digits that tell a small figure from none. */
export const formatCpus = (cpus: number): string =>
  cpus < 0.1 ? CPUS.format(cpus) : String(Number(cpus.toFixed(2)));

export function formatDuration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joinUnits(minutes, 'min', Math.floor(seconds % 60), 's');
  return joinUnits(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
}

const joinUnits = (large: number, largeUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;

/** Keeps both ends, which tell names apart: namespaces differ at the front, methods at the back. */
export function elideMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  if (length < 3) return text.slice(0, Math.max(0, length));
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}…${text.slice(text.length - tail)}`;
}

export const plural = (count: number, noun: string, nouns = `${noun}s`): string =>
  `${formatCount(count)} ${count === 1 ? noun : nouns}`;

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const SHORT_CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
const DAY_MS = 86_400_000;

/** A moment on an axis of so many milliseconds: seconds only where they differ. */
export function formatClock(ms: number, spanMs: number): string {
  if (spanMs <= 1_800_000) return CLOCK.format(ms);
  return spanMs <= 1.5 * DAY_MS ? SHORT_CLOCK.format(ms) : `${DAY.format(ms)} ${SHORT_CLOCK.format(ms)}`;
}

/** `12:04:05 – 12:04:35 (30 s)`, in the reader's time zone; with the day where it is not today's. */
export function formatSpan({ fromMs, toMs }: { fromMs: number; toMs: number }, nowMs = Date.now()): string {
  const isToday = nowMs - fromMs < DAY_MS / 2 || DAY.format(fromMs) === DAY.format(nowMs);
  const day = isToday ? '' : `${DAY.format(fromMs)}, `;
  const end = toMs - fromMs < DAY_MS ? CLOCK.format(toMs) : `${DAY.format(toMs)}, ${CLOCK.format(toMs)}`;
  return `${day}${CLOCK.format(fromMs)} – ${end} (${formatDuration((toMs - fromMs) / 1000)})`;
}

/** A change of a share, in percentage points. */
export function formatPoints(change: number): string {
  const points = change * 100;
  if (Math.abs(points) < 0.005) return '±0';
  return `${points > 0 ? '+' : '−'}${Math.abs(points).toFixed(Math.abs(points) < 1 ? 2 : 1)} points`;
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[power]}`;
}

/** What OpenTelemetry calls a service that nobody named: the name behind it says as much. */
const UNKNOWN_SERVICE = /^unknown_service(?::|$)/;

/** A label's value as people read it. */
export function valueName(label: string, value: string): string {
  const shown = label === 'service' ? value.replace(UNKNOWN_SERVICE, '') : value;
  return shown === '' ? '(none)' : shown;
}
