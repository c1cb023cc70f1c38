import { destination, type Logger, pino, stdTimeFunctions } from 'pino';
import pretty, { prettyFactory } from 'pino-pretty';
import { logLines } from '../../common/base/observed.ts';
import { printable } from '../../common/base/printable.ts';
import { isJournal, journalPriority } from './service-line.ts';

const FOR_PEOPLE = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname,name' };
/** journald adds who and where; a level's number says nothing to a reader. */
const FOR_SERVICES = {
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (level: string) => ({ level }) },
};

/** For --telemetry. */
function showLine(line: string): string {
  if (logLines.hasSubscribers) logLines.publish(line);
  return line;
}

/** A message may quote what a stranger wrote; JSON has escapes for that, a terminal obeys it. */
const hooks = {
  logMethod(this: Logger, args: unknown[], method: (...args: unknown[]) => void): void {
    method.apply(
      this,
      args.map((arg) => (typeof arg === 'string' ? arg.split('\n').map(printable).join('\n') : arg)),
    );
  },
};

/** Of services: lines for people on a terminal, JSON lines elsewhere; always to standard error. */
export function makeLogger(name: string, verbose = false): Logger {
  const level = verbose ? 'debug' : 'info';
  if (!process.stderr.isTTY) {
    const errors = destination({ fd: 2, sync: true });
    // whoever read it is gone, or its disk is full: no reason to stop
    errors.on('error', () => {});
    const stream = isJournal(process.env['JOURNAL_STREAM'])
      ? { write: (line: string) => errors.write(journalPriority(line) + line) }
      : errors;
    return pino({ level, ...FOR_SERVICES, base: { name }, hooks: { streamWrite: showLine } }, stream);
  }
  return pino(
    { name, level, hooks: { ...hooks, streamWrite: showLine } },
    pretty({ ...FOR_PEOPLE, destination: 2, sync: true }),
  );
}

/** The same lines for people, to whatever else owns the terminal. */
export function makeLoggerTo(name: string, write: (line: string) => void): Logger {
  const format = prettyFactory({ ...FOR_PEOPLE, colorize: false });
  return pino({ name, level: 'info', hooks }, { write: (json) => write(format(json)) });
}

interface Line {
  level: number;
  msg: string;
  [key: string]: unknown;
}

const WARN = pino.levels.values['warn']!;
const ERROR = pino.levels.values['error']!;

/** Of commands that a person runs once: `everyframe: warning: …`, wherever it goes. What is not for every run needs `verbose`. */
export function makePlainLogger(name: string, verbose = false, write = toStderr): Logger {
  const level = verbose ? 'debug' : 'warn';
  return pino({ name, level, base: {}, timestamp: false }, { write: (json) => write(plainLine(json)) });
}

function toStderr(line: string): void {
  process.stderr.write(line);
}

function plainLine(json: string): string {
  const { level, msg, name: _name, ...rest } = JSON.parse(json) as Line;
  const kind = level >= ERROR ? 'error: ' : level >= WARN ? 'warning: ' : '';
  const details = Object.keys(rest).length === 0 ? '' : ` ${JSON.stringify(rest)}`;
  return `everyframe: ${kind}${printable(msg ?? '')}${printable(details)}\n`;
}
