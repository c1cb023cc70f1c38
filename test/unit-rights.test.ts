/** What everyframe-agent.service grants is enough for each kind of event; before Linux 6.6 probes take its drop-in. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../agent/base/native.ts';

const ROOT = join(import.meta.dirname, '..');
const SYSTEMD = join(ROOT, 'deploy/systemd');

/** As systemd adds up what is given several times. */
const granted = (...files: string[]): string[] =>
  files.flatMap((file) =>
    [...readFileSync(join(SYSTEMD, file), 'utf8').matchAll(/^AmbientCapabilities=CAP_(.*)$/gm)].flatMap(
      ([, names]) => names!.toLowerCase().split(' cap_'),
    ),
  );

/** An agent for half a second as the unit starts it: a user without rights, with capabilities, no new privileges. */
function agent(capabilities: string[], ...flags: string[]) {
  const set = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  const user = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
  const rights = [`--inh-caps=${set}`, `--ambient-caps=${set}`, `--bounding-set=${set}`];
  const command = [join(ROOT, 'bin/everyframe'), 'agent', '--once', '--dry-run', '--symbol-cache', 'off'];
  const { status, stdout, stderr } = spawnSync(
    'setpriv',
    [...user, ...rights, ...command, '--reporter-interval', '500ms', ...flags],
    { encoding: 'utf8', timeout: 60_000 },
  );
  return { status, log: stdout + stderr };
}

const each = (events: string[]): string[] => events.flatMap((event) => ['--event', event]);
const WITHOUT = ['--off-cpu', ...each(['mmap', 'page-faults', 'tracepoint:sched:sched_process_fork'])];
const PROBES = ['uprobe:libc:malloc', 'uretprobe:libc:malloc', 'malloc', 'usdt:libstdc++:libstdcxx:throw'];

const uprobeMulti = process.getuid?.() === 0 && loadNative().hasUprobeMulti();

if (process.getuid?.() !== 0) console.log('skipped: it needs root');

describe.runIf(process.getuid?.() === 0)("everyframe-agent.service's rights", () => {
  it('do for waits, memory, events of the kernel and tracepoints', () => {
    const { log, status } = agent(granted('everyframe-agent.service'), ...WITHOUT);
    expect(log).toMatch(/this would be pushed: \d+ samples/);
    expect(status).toBe(0);
  });

  it.runIf(uprobeMulti)('do for probes in user code, too', () => {
    const { log, status } = agent(granted('everyframe-agent.service'), ...each(PROBES));
    expect(log).toMatch(/this would be pushed: \d+ samples/);
    expect(log).not.toMatch(/missing|refuses/);
    expect(status).toBe(0);
  });

  it.skipIf(uprobeMulti).each(PROBES)('do not for %s, which is said before anything is sampled', (event) => {
    const { log, status } = agent(granted('everyframe-agent.service'), ...each([event]));
    expect(log).toContain('CAP_SYS_ADMIN is missing');
    expect(log).toContain('probes.conf');
    expect(status).toBe(1);
  });

  it.skipIf(uprobeMulti)('do with probes.conf', () => {
    const { log, status } = agent(
      granted('everyframe-agent.service', 'probes.conf'),
      ...each(PROBES.slice(0, 3)),
    );
    expect(log).toMatch(/this would be pushed: \d+ samples/);
    expect(status).toBe(0);
  });
});
