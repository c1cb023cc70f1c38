/** What ends this process against its will: said in one place, with what to do about it and an exit code of its own. */

/** EX_SOFTWARE of sysexits(3). */
const EXIT_CODE = 70;

/** What a person does where the machine gives out. */
const ADVICE: Record<string, string> = {
  EMFILE: 'this process may not open more files: raise its limit (ulimit -n, systemd: LimitNOFILE=)',
  ENFILE: 'no process may open more files: raise fs.file-max',
  ENOSPC: 'the disk is full: make room there',
  EDQUOT: 'the disk quota is used up: make room there',
  EIO: 'the disk does not do what it should: dmesg says more',
  EROFS: 'what it writes to can only be read: name another place',
  ENOMEM: 'memory is used up: give it more, or --max-memory less',
  EAGAIN:
    'no more processes or threads may be started: raise the limit (ulimit -u, or pids.max of the cgroup)',
};

/** One sentence where the machine is the reason; else the stack, for whoever mends this. */
export function describeFault(error: unknown): string {
  const { code, message, stack } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  const advice = ADVICE[code ?? ''];
  return advice === undefined
    ? `a mistake of everyframe's own ended it; please report this:\n${stack ?? String(error)}`
    : `${message}: ${advice}`;
}

/** Prints it once whatever has the terminal has left it. */
export function endOnFaults(print: (text: string) => void): void {
  process.on('uncaughtException', (error) => {
    process.once('exit', () => print(describeFault(error)));
    process.exit(EXIT_CODE);
  });
}

/** What reads standard error is gone, or its disk is full: no reason to stop. */
export function ignoreLostErrors(): void {
  process.stderr.on('error', () => {});
}
