import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type HostRoots, missingCapabilities, readHostFacts } from './host-facts.ts';

const made: string[] = [];
afterEach(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

/** A host made of files; a value that starts with `->` is a symbolic link. */
function makeHost(files: Record<string, string>): HostRoots {
  const root = mkdtempSync(join(tmpdir(), 'everyframe-host-'));
  made.push(root);
  for (const [path, content] of Object.entries(files)) {
    const target = join(root, path);
    mkdirSync(dirname(target), { recursive: true });
    if (content.startsWith('->')) symlinkSync(content.slice(2), target);
    else writeFileSync(target, content);
  }
  return { root, proc: join(root, 'proc'), sys: join(root, 'sys') };
}

const DEBIAN_12 = {
  'proc/sys/kernel/osrelease': '6.1.0-38-amd64\n',
  'proc/sys/kernel/perf_event_paranoid': '3\n',
  'proc/sys/kernel/kptr_restrict': '0\n',
  'proc/sys/kernel/unprivileged_bpf_disabled': '2\n',
  'proc/sys/net/core/bpf_jit_enable': '1\n',
  'proc/kallsyms':
    '0000000000000000 A fixed_percpu_data\nffffffff96a00000 T startup_64\nffffffff96a00000 T _stext\n',
  'proc/self/status': 'Name:\tnode\nCapInh:\t0000000000000000\nCapEff:\t000001ffffffffff\n',
  'proc/self/limits':
    'Limit                     Soft Limit           Hard Limit           Units\n' +
    'Max locked memory         67108864             unlimited            bytes\n',
  'proc/self/ns/pid': '->pid:[4026531836]',
  'proc/self/ns/user': '->user:[4026531837]',
  'sys/kernel/btf/vmlinux': '',
  'sys/kernel/security/lockdown': 'none [integrity] confidentiality\n',
  'sys/fs/cgroup/cgroup.controllers': 'cpu memory\n',
};

describe('readHostFacts', () => {
  it('reads a Debian 12 host', () => {
    expect(readHostFacts(makeHost(DEBIAN_12))).toMatchObject({
      kernelRelease: '6.1.0-38-amd64',
      kernelVersion: [6, 1],
      hasBtf: true,
      capabilities: 0x1ffffffffffn,
      inUserNamespace: false,
      inPidNamespace: false,
      perfEventParanoid: 3,
      kptrRestrict: 0,
      kernelSymbolsVisible: true,
      unprivilegedBpfDisabled: 2,
      bpfJit: 1,
      lockdown: 'integrity',
      cgroupVersion: 2,
      container: '',
      memlockBytes: 64 * 1024 * 1024,
    });
  });

  it('reads no more of the list of kernel symbols than says whether it has addresses', () => {
    const host = makeHost(DEBIAN_12);
    // too large to be read as a whole
    truncateSync(join(host.proc, 'kallsyms'), 8 * 2 ** 30);
    expect(readHostFacts(host).kernelSymbolsVisible).toBe(true);
  });

  it('knows nothing of an empty host', () => {
    expect(readHostFacts(makeHost({}))).toMatchObject({
      kernelRelease: '',
      kernelVersion: [0, 0],
      hasBtf: false,
      capabilities: undefined,
      inUserNamespace: false,
      inPidNamespace: false,
      perfEventParanoid: undefined,
      kernelSymbolsVisible: undefined,
      bpfJit: undefined,
      lockdown: 'unknown',
      cgroupVersion: 'unknown',
      container: '',
      memlockBytes: undefined,
    });
  });

  it('takes kernel symbols whose addresses are all zero for hidden', () => {
    const kallsyms =
      '0000000000000000 A fixed_percpu_data\n0000000000000000 T startup_64\n0000000000000000 t do_one_initcall\n';
    expect(readHostFacts(makeHost({ 'proc/kallsyms': kallsyms })).kernelSymbolsVisible).toBe(false);
  });

  it.each([
    [{ 'proc/self/ns/pid': '->pid:[4026532841]' }, { inPidNamespace: true }],
    [{ 'proc/self/ns/user': '->user:[4026532843]' }, { inUserNamespace: true }],
    [{ 'sys/fs/cgroup/unified/cgroup.controllers': '' }, { cgroupVersion: 'hybrid' }],
    [{ 'sys/fs/cgroup/memory/tasks': '' }, { cgroupVersion: 1 }],
    [{ '.dockerenv': '' }, { container: 'docker' }],
    [{ 'run/.containerenv': '' }, { container: 'podman' }],
    [{ 'run/systemd/container': 'lxc\n' }, { container: 'lxc' }],
    [
      { 'proc/self/limits': 'Max open files            1024                 524288               files\n' },
      { openFiles: 1024 },
    ],
    [{ 'sys/devices/system/cpu/online': '0-3,7\n' }, { cpus: 5 }],
    [{ 'sys/devices/system/cpu/online': 'none\n' }, { cpus: 1 }],
    [
      { 'proc/self/limits': 'Max locked memory         unlimited   unlimited   bytes\n' },
      { memlockBytes: Infinity },
    ],
    [
      { 'sys/kernel/security/lockdown': 'none integrity [confidentiality]\n' },
      { lockdown: 'confidentiality' },
    ],
    [{ 'proc/sys/kernel/perf_event_paranoid': '-1\n' }, { perfEventParanoid: -1 }],
    [{ 'proc/sys/kernel/osrelease': 'custom\n' }, { kernelVersion: [0, 0], kernelRelease: 'custom' }],
    [{ 'proc/self/status': 'CapEff:\tnonsense\n' }, { capabilities: undefined }],
  ])('%j gives %j', (files, expected) => {
    expect(readHostFacts(makeHost(files as Record<string, string>))).toMatchObject(expected);
  });
});

describe('missingCapabilities', () => {
  const withCapabilities = (hex: string, more: Record<string, string> = {}) => {
    const host = makeHost({ ...DEBIAN_12, 'proc/self/status': `CapEff:\t${hex}\n`, ...more });
    return missingCapabilities(readHostFacts(host)).map((missing) => missing.name);
  };

  it('misses nothing with the six that the agent uses', () => {
    expect(withCapabilities('000001c400080004')).toEqual([]);
  });

  it('takes CAP_SYS_ADMIN for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE', () => {
    expect(withCapabilities('0000000000200000')).toEqual(['CAP_SYS_PTRACE', 'CAP_DAC_READ_SEARCH']);
  });

  it('takes CAP_DAC_OVERRIDE for CAP_DAC_READ_SEARCH', () => {
    expect(withCapabilities('000001c400080002')).toEqual([]);
  });

  it('misses CAP_SYSLOG only where kernel symbols are hidden', () => {
    const hidden = { 'proc/kallsyms': '0000000000000000 T _stext\n' };
    expect(withCapabilities('000001c000080004')).toEqual([]);
    expect(withCapabilities('000001c000080004', hidden)).toEqual(['CAP_SYSLOG']);
  });

  it('counts none in a user namespace', () => {
    expect(withCapabilities('000001ffffffffff', { 'proc/self/ns/user': '->user:[4026532843]' })).toEqual([
      'CAP_BPF',
      'CAP_PERFMON',
      'CAP_SYS_PTRACE',
      'CAP_DAC_READ_SEARCH',
      'CAP_CHECKPOINT_RESTORE',
    ]);
  });

  it('claims nothing where the capabilities cannot be read', () => {
    expect(missingCapabilities(readHostFacts(makeHost({})))).toEqual([]);
  });
});
