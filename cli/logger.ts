import { destination, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

/** Lines for people on a terminal, JSON lines elsewhere; always to standard error. */
export function makeLogger(name: string, verbose = false): Logger {
  const level = verbose ? 'debug' : 'info';
  if (!process.stderr.isTTY) return pino({ name, level }, destination({ fd: 2, sync: true }));
  const stream = pretty({
    destination: 2,
    sync: true,
    translateTime: 'HH:MM:ss',
    ignore: 'pid,hostname,name',
  });
  return pino({ name, level }, stream);
}
