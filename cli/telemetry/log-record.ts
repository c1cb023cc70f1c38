import { type LogRecord, SeverityNumber } from '@opentelemetry/api-logs';

const SEVERITIES: Record<string, SeverityNumber> = {
  trace: SeverityNumber.TRACE,
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
  fatal: SeverityNumber.FATAL,
};
const LEVELS: Record<number, string> = {
  ...{ 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' },
};

/** Of a line of pino's; undefined for one that is not JSON. */
export function logRecordOf(line: string): LogRecord | undefined {
  const fields = fieldsOf(line);
  if (fields === undefined) return undefined;
  const { level, time, msg, name: _name, pid: _pid, hostname: _hostname, ...rest } = fields;
  const severityText = typeof level === 'number' ? (LEVELS[level] ?? '') : String(level);
  const at = new Date(time as string | number);
  return {
    severityText,
    severityNumber: SEVERITIES[severityText] ?? SeverityNumber.UNSPECIFIED,
    body: String(msg ?? ''),
    attributes: Object.fromEntries(
      Object.entries(rest).map(([key, value]) => [
        key,
        typeof value === 'object' ? JSON.stringify(value) : String(value),
      ]),
    ),
    ...(Number.isFinite(at.getTime()) && { timestamp: at }),
  };
}

function fieldsOf(line: string): Record<string, unknown> | undefined {
  try {
    const fields: unknown = JSON.parse(line);
    return typeof fields === 'object' && fields !== null ? { ...fields } : undefined;
  } catch {
    return undefined;
  }
}
