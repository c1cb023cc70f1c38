import { destination, type Logger, pino } from 'pino';
import pretty, { prettyFactory } from 'pino-pretty';

const FOR_PEOPLE = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname,name' };

/** Lines for people on a terminal, JSON lines elsewhere; always to standard error. */
export function makeLogger(name: string, verbose = false): Logger {
  const level = verbose ? 'debug' : 'info';
  if (!process.stderr.isTTY) return pino({ name, level }, destination({ fd: 2, sync: true }));
  return pino({ name, level }, pretty({ ...FOR_PEOPLE, destination: 2, sync: true }));
}

/** The same lines for people, to whatever else owns the terminal. */
export function makeLoggerTo(name: string, write: (line: string) => void): Logger {
  const format = prettyFactory({ ...FOR_PEOPLE, colorize: false });
  return pino({ name, level: 'info' }, { write: (json) => write(format(json)) });
}
