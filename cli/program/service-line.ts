/** Lines of a service's log where no logger is there: its first, and its last. They look as those of logger.ts. */
import { fstatSync } from 'node:fs';

/** The commands that services are, and what their lines are named. */
const NAMES: Readonly<Record<string, string>> = { run: 'everyframe', agent: 'agent', collector: 'collector' };

/** Undefined where people read what is told: on a terminal, and of all other commands. */
export function serviceName(
  argv: readonly string[],
  isTerminal: boolean | undefined = process.stderr.isTTY,
): string | undefined {
  const [first = '', part] = argv;
  const command = /^(?:-|$)/.test(first) ? 'run' : first;
  if (isTerminal || part === 'import' || !Object.hasOwn(NAMES, command)) return undefined;
  return NAMES[command];
}

/** What ends it, as a line of JSON; for journald with its priority. */
export function fatalLine(name: string, msg: string): string {
  const line = JSON.stringify({ level: 'fatal', time: new Date().toISOString(), name, msg });
  return isJournal(process.env['JOURNAL_STREAM']) ? journalPriority(line) + line : line;
}

/** Whether what is written to standard error goes to journald, by its device and inode (systemd.exec(5)). */
export function isJournal(stream: string | undefined): boolean {
  const { dev, ino } = fstatSync(2);
  return stream === `${dev}:${ino}`;
}

const PRIORITIES: Record<string, number> = { fatal: 2, error: 3, warn: 4, info: 6 };
const DEBUG_PRIORITY = 7;

/** The prefix that journald takes off and keeps as the line's priority (sd-daemon(3)). */
export function journalPriority(line: string): string {
  const level = /"level":"(\w+)"/.exec(line)?.[1] ?? '';
  return `<${PRIORITIES[level] ?? DEBUG_PRIORITY}>`;
}
