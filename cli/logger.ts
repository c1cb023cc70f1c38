import { destination, type Logger, pino } from 'pino';
import pretty, { prettyFactory } from 'pino-pretty';
import { printable } from '../common/base/printable.ts';

const FOR_PEOPLE = { translateTime: 'HH:MM:ss', ignore: 'pid,hostname,name' };

/** A message may quote what a stranger wrote; JSON has escapes for that, a terminal obeys it. */
const hooks = {
  logMethod(this: Logger, args: unknown[], method: (...args: unknown[]) => void): void {
    method.apply(
      this,
      args.map((arg) => (typeof arg === 'string' ? arg.split('\n').map(printable).join('\n') : arg)),
    );
  },
};

/** Lines for people on a terminal, JSON lines elsewhere; always to standard error. */
export function makeLogger(name: string, verbose = false): Logger {
  const level = verbose ? 'debug' : 'info';
  if (!process.stderr.isTTY) {
    const errors = destination({ fd: 2, sync: true });
    // whoever read it is gone, or its disk is full: no reason to stop
    errors.on('error', () => {});
    return pino({ name, level }, errors);
  }
  return pino({ name, level, hooks }, pretty({ ...FOR_PEOPLE, destination: 2, sync: true }));
}

/** The same lines for people, to whatever else owns the terminal. */
export function makeLoggerTo(name: string, write: (line: string) => void): Logger {
  const format = prettyFactory({ ...FOR_PEOPLE, colorize: false });
  return pino({ name, level: 'info', hooks }, { write: (json) => write(format(json)) });
}
