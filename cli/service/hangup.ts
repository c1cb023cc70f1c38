/** SIGHUP: for a service "read your settings again", for what runs in a terminal its end. */
import { isatty } from 'node:tty';

const isInTerminal = (): boolean => [0, 1, 2].some((fd) => isatty(fd));

/** Calls `reload` at each SIGHUP, one at a time; false in a terminal, where a hangup is left to others. */
export function onReload(reload: () => Promise<void>): boolean {
  if (isInTerminal()) return false;
  let last = Promise.resolve();
  process.on('SIGHUP', () => {
    last = last.then(reload);
  });
  return true;
}
