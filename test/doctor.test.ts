/** The built product's doctor on this machine, with one capability after the other taken away. Needs root. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../agent/base/native.ts';
import type { Check } from '../agent/host/host-checks.ts';
import { readHostFacts } from '../agent/host/host-facts.ts';

const EVERYFRAME = fileURLToPath(new URL('../bin/everyframe', import.meta.url));
const NEEDED = ['bpf', 'perfmon', 'sys_ptrace', 'dac_read_search', 'checkpoint_restore', 'syslog'];

/** Runs as root of a bounding set, which is what an exec as root grants. */
function doctor(capabilities: string[], ...args: string[]) {
  const bounding = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  const result = spawnSync(
    'setpriv',
    ['--inh-caps=-all', `--bounding-set=${bounding}`, EVERYFRAME, 'doctor', ...args],
    { encoding: 'utf8', timeout: 30_000 },
  );
  expect(result.stderr).toBe('');
  return result;
}

const parse = (stdout: string): Check[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

if (process.getuid?.() !== 0) console.log('skipped: it needs root');

describe.runIf(process.getuid?.() === 0)('everyframe doctor', () => {
  it('can run here with the six capabilities and no more', () => {
    const { stdout, status } = doctor(NEEDED, '--json');
    expect(parse(stdout).filter((check) => check.status === 'fatal')).toEqual([]);
    expect(parse(stdout)).toContainEqual({ name: 'capabilities', status: 'ok', message: 'all that it uses' });
    expect(status).toBe(0);
  });

  it('says whether probes in user code can be set with them', () => {
    const status = loadNative().hasUprobeMulti() ? 'ok' : 'degraded';
    const { stdout } = doctor(NEEDED, '--json');
    expect(parse(stdout)).toContainEqual(expect.objectContaining({ name: 'probes', status }));
  });

  it.each([
    ['bpf', 1, 'CAP_BPF is missing: BPF programs and maps cannot be loaded'],
    ['perfmon', 1, 'CAP_PERFMON is missing: CPUs cannot be sampled, and BPF may not read kernel memory'],
    ['sys_ptrace', 0, 'CAP_SYS_PTRACE is missing: files of processes of other users cannot be opened'],
    ['dac_read_search', 0, 'CAP_DAC_READ_SEARCH is missing: executables that this user may not read'],
    ['checkpoint_restore', 0, 'CAP_CHECKPOINT_RESTORE is missing: files deleted or replaced while mapped'],
  ])('without CAP_%s exits with %i and says: %s', (name, exitCode, sentence) => {
    const { stdout, status } = doctor(NEEDED.filter((other) => other !== name));
    expect(stdout).toContain(sentence);
    expect(stdout).toContain(`fix: run it with sudo, or grant CAP_${name.toUpperCase()}`);
    expect(status).toBe(exitCode);
  });

  it('without CAP_SYSLOG complains just where the kernel then hides its symbols', () => {
    const facts = readHostFacts();
    const shownToAll = facts.kptrRestrict === 0 && (facts.perfEventParanoid ?? 2) <= 1;
    const { stdout, status } = doctor(NEEDED.filter((name) => name !== 'syslog'));
    expect(stdout.includes('CAP_SYSLOG is missing: kernel symbols are hidden')).toBe(!shownToAll);
    expect(status).toBe(0);
  });

  it('in a PID namespace of its own is told that the PIDs are not those of the host', () => {
    const { stdout, status } = spawnSync(
      'unshare',
      ['--pid', '--fork', '--mount-proc', EVERYFRAME, 'doctor', '--json'],
      { encoding: 'utf8', timeout: 30_000 },
    );
    expect(parse(stdout)).toContainEqual(
      expect.objectContaining({
        name: 'pid namespace',
        status: 'fatal',
        fix: expect.stringContaining('--pid=host'),
      }),
    );
    expect(status).toBe(1);
  });
});
