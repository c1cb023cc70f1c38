/** What probes at the return of functions may do to programs, by kernel. */

/**
 * On amd64 Linux 6.11 and later a probed function returns by a system call of its own, which seccomp filters saw until 6.14 (stable
 * releases before have taken the change at different times): a filter that does not know it ends its program.
 *
 * @param release as `uname -r` has it
 * @returns the sentence for the user; undefined: there is no danger
 */
export function returnProbeDanger(release: string, architecture: string): string | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (architecture !== 'x64' || major !== '6' || Number(minor) < 11 || Number(minor) > 13) return undefined;
  return (
    `it probes where functions return, and on Linux ${release} that may end programs with a seccomp filter (services of systemd, browsers, ` +
    'containers): probe a file that only programs without one use; Linux 6.14 mended it'
  );
}
