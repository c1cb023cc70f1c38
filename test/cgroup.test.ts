/** The cgroup of a process that is gone before anybody could read its /proc entry, in either version's hierarchy. */
import { spawn } from 'node:child_process';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { cgroupRoot as root } from './support/cgroup-root.ts';
import { missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';

it.skipIf(missingRights || !root)(
  'short-lived processes have the cgroup that they ran in',
  async () => {
    const name = `everyframe-test-${process.pid}`;
    const outer = `${root}/${name}`;
    const inner = `${outer}/docker-${'ab'.repeat(32)}.scope`;
    mkdirSync(inner, { recursive: true });
    const recording = await Recording.start();
    const shell = spawn(
      'sh',
      ['-c', 'read go; while read -r more; do /bin/ls -R /usr/lib/ssl /usr/lib/apt; done'],
      {
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    );
    try {
      writeFileSync(`${inner}/cgroup.procs`, String(shell.pid));
      shell.stdin.write('go\n');
      const listed = () =>
        recording.profiles
          .flatMap(({ processes }) => processes)
          .filter(({ parentPid, executableName }) => parentPid === shell.pid && executableName === 'ls');
      await recording.until(() => {
        shell.stdin.write('more\n'.repeat(50));
        return listed().length >= 10;
      });
      for (const { cgroupPath, containerId } of listed()) {
        expect(cgroupPath).toMatch(new RegExp(`/${name}/docker-(ab){32}\\.scope$`));
        expect(containerId).toBe('ab'.repeat(32));
      }
    } finally {
      shell.stdin.end();
      await new Promise((resolve) => shell.once('exit', resolve));
      await recording.stop();
      rmdirSync(inner);
      rmdirSync(outer);
    }
  },
  120_000,
);
