import { describe, expect, it } from 'vitest';
import { checkHost, checkProbes } from './host-checks.ts';
import type { HostFacts } from './host-facts.ts';

const GOOD: HostFacts = {
  kernelRelease: '6.12.41',
  kernelVersion: [6, 12],
  architecture: 'x64',
  nodeVersion: '20.19.0',
  hasBtf: true,
  capabilities: 0x1ffffffffffn,
  inUserNamespace: false,
  inPidNamespace: false,
  perfEventParanoid: 2,
  kptrRestrict: 1,
  kernelSymbolsVisible: true,
  unprivilegedBpfDisabled: 2,
  bpfJit: 1,
  lockdown: 'none',
  cgroupVersion: 2,
  container: '',
  openFiles: 4096,
  cpus: 2,
  memlockBytes: 8 * 1024 * 1024,
};
const THE_SIX = 0x1c400080004n;

/** Everything that is not ok. */
const complaints = (change: Partial<HostFacts>) =>
  checkHost({ ...GOOD, ...change }).filter((check) => check.status !== 'ok');

describe('checkHost', () => {
  it('has nothing to say against a good host, with all capabilities or just the six', () => {
    expect(complaints({})).toEqual([]);
    expect(complaints({ capabilities: THE_SIX })).toEqual([]);
    expect(complaints({ lockdown: 'confidentiality', kernelVersion: [6, 2] })).toEqual([]);
  });

  it.each([
    ['an old kernel', { kernelRelease: '5.4.0-200', kernelVersion: [5, 4] }, 'fatal', 'kernel', '5.4.0-200'],
    ['another architecture', { architecture: 's390x' }, 'fatal', 'architecture', 's390x'],
    ['an old Node', { nodeVersion: '18.20.4' }, 'fatal', 'node', '18.20.4'],
    ['an odd Node', { nodeVersion: '22.3.0' }, 'fatal', 'node', '22.3.0'],
    ['no BTF', { hasBtf: false }, 'fatal', 'btf', '/sys/kernel/btf/vmlinux'],
    ['a user namespace', { inUserNamespace: true }, 'fatal', 'capabilities', 'user namespace'],
    ['a PID namespace', { inPidNamespace: true }, 'fatal', 'pid namespace', 'PIDs'],
    ['few open files', { openFiles: 129 }, 'fatal', 'open files', '129, and 130 are needed on 2 CPUs'],
    ['not many open files', { openFiles: 130 }, 'degraded', 'open files', '130'],
    ['lockdown', { lockdown: 'confidentiality', kernelVersion: [6, 1] }, 'fatal', 'lockdown', '6.2'],
    ['no perf events', { perfEventParanoid: undefined }, 'fatal', 'perf_event_paranoid', 'perf events'],
    [
      "Debian's paranoid 3 without CAP_SYS_ADMIN",
      { perfEventParanoid: 3, capabilities: THE_SIX },
      'degraded',
      'perf_event_paranoid',
      '3',
    ],
    [
      'kptr_restrict 2',
      { kptrRestrict: 2, kernelSymbolsVisible: false },
      'degraded',
      'kernel symbols',
      'kernel.kptr_restrict = 2',
    ],
    ['no JIT', { bpfJit: 0 }, 'degraded', 'bpf jit', 'interpreted'],
    ['no /proc', { capabilities: undefined }, 'fatal', 'proc', '/proc/self/status'],
    [
      'little locked memory on 5.10',
      { kernelVersion: [5, 10], memlockBytes: 65536, capabilities: THE_SIX },
      'fatal',
      'memlock',
      '65536',
    ],
  ] as [string, Partial<HostFacts>, string, string, string][])(
    '%s is said, with a fix',
    (_, change, status, name, words) => {
      const found = complaints(change);
      expect(found).toEqual([expect.objectContaining({ status, name, fix: expect.stringMatching(/\S/) })]);
      expect(found[0]?.message).toContain(words);
    },
  );

  it('accepts paranoid 3 and 4 for root', () => {
    expect(complaints({ perfEventParanoid: 4 })).toEqual([]);
    expect(complaints({ perfEventParanoid: 3 })).toEqual([]);
    expect(complaints({ perfEventParanoid: 2, capabilities: THE_SIX })).toEqual([]);
  });

  it('asks for locked memory only before 5.11 and without CAP_SYS_RESOURCE', () => {
    expect(complaints({ kernelVersion: [5, 11], memlockBytes: 65536, capabilities: THE_SIX })).toEqual([]);
    expect(complaints({ kernelVersion: [5, 10], memlockBytes: 65536 })).toEqual([]);
    expect(complaints({ kernelVersion: [5, 10], memlockBytes: Infinity, capabilities: THE_SIX })).toEqual([]);
  });

  it.each([
    [39, 'fatal', 'CAP_BPF is missing: BPF programs and maps cannot be loaded'],
    [38, 'fatal', 'CAP_PERFMON is missing: CPUs cannot be sampled'],
    [19, 'degraded', 'CAP_SYS_PTRACE is missing: files of processes of other users cannot be opened'],
    [2, 'degraded', 'CAP_DAC_READ_SEARCH is missing: executables that this user may not read'],
    [40, 'degraded', 'CAP_CHECKPOINT_RESTORE is missing: files deleted or replaced while mapped'],
  ])('without capability %i says %s: %s…', (bit, status, sentence) => {
    const found = complaints({ capabilities: THE_SIX & ~(1n << BigInt(bit)) });
    expect(found).toEqual([expect.objectContaining({ status })]);
    expect(found[0]?.message).toContain(sentence);
    expect(found[0]?.fix).toContain('sudo');
  });

  it('says once that CAP_SYSLOG hides kernel symbols', () => {
    const change = { capabilities: THE_SIX & ~(1n << 34n), kernelSymbolsVisible: false };
    expect(complaints(change).map((check) => check.message)).toEqual([
      'CAP_SYSLOG is missing: kernel symbols are hidden, so kernel frames are addresses',
    ]);
    expect(complaints({ ...change, kptrRestrict: 2 }).map((check) => check.name)).toEqual([
      'capability CAP_SYSLOG',
      'kernel symbols',
    ]);
  });

  it('mentions a container without complaint', () => {
    const checks = checkHost({ ...GOOD, container: 'docker' });
    expect(checks).toContainEqual({
      name: 'container',
      status: 'ok',
      message: 'this looks like a container (docker)',
    });
  });
});

describe('checkProbes', () => {
  it.each([
    ['anybody who samples, where the kernel has uprobe_multi', THE_SIX, true, 'ok'],
    ['root, where it has not', 0x1ffffffffffn, false, 'ok'],
    ['nobody else', THE_SIX, false, 'degraded'],
  ])('lets %s set them', (_, capabilities, uprobeMulti, status) => {
    const check = checkProbes({ ...GOOD, capabilities }, uprobeMulti);
    expect(check).toMatchObject({ name: 'probes', status });
    expect(check.fix === undefined).toBe(status === 'ok');
  });
});
