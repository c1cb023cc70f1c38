/**
 * What this machine offers to a profiler, read from /proc and /sys. Facts only: `host-checks.ts` judges them.
 *
 * Every fact that can't be read is `undefined` or 'unknown': a hardened or containerised host hides some
 * files, and a hidden file is not proof of anything. The roots can be set, so that tests bring their own host.
 */
import { closeSync, existsSync, openSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import {
  CAP_SYS_ADMIN_BIT,
  CAP_SYS_RESOURCE_BIT,
  effectiveCapabilities,
  hasCapability,
  type MissingCapability,
  missingFrom,
  usedCapabilities,
} from './capabilities.ts';
import { parseCpuList } from './cpus.ts';

export interface HostRoots {
  /** Mount point of procfs. */
  proc: string;
  /** Mount point of sysfs. */
  sys: string;
  /** The file system's root, for hints such as `/.dockerenv`. */
  root: string;
}

export const THIS_HOST: HostRoots = { proc: '/proc', sys: '/sys', root: '/' };

export interface HostFacts {
  /** `uname -r`, '' if unreadable. */
  kernelRelease: string;
  /** [major, minor], [0, 0] if the release does not begin with two numbers. */
  kernelVersion: readonly [number, number];
  /** Node's name of it: 'x64', 'arm64', … */
  architecture: string;
  nodeVersion: string;
  hasBtf: boolean;
  /** Bit n: capability n is effective; undefined if /proc/self/status does not say. */
  capabilities: bigint | undefined;
  /** Capabilities in a user namespace other than the first count for nothing in BPF and perf events. */
  inUserNamespace: boolean;
  /** In another PID namespace than the first, the kernel's PIDs are not those of this /proc. */
  inPidNamespace: boolean;
  perfEventParanoid: number | undefined;
  kptrRestrict: number | undefined;
  /** True if /proc/kallsyms shows addresses to this process; undefined if the file can't be read. */
  kernelSymbolsVisible: boolean | undefined;
  unprivilegedBpfDisabled: number | undefined;
  /** net.core.bpf_jit_enable; exists only in the first network namespace. */
  bpfJit: number | undefined;
  lockdown: 'none' | 'integrity' | 'confidentiality' | 'unknown';
  cgroupVersion: 1 | 2 | 'hybrid' | 'unknown';
  /** Kind of container, by the hints that engines leave; '' if none. */
  container: string;
  /** How many files this process may have open, Infinity if unlimited: Node has raised the soft limit to the hard one. */
  openFiles: number | undefined;
  /** How many are online; 1 where /sys does not say. */
  cpus: number;
  /** Soft limit of locked memory in bytes, Infinity if unlimited. */
  memlockBytes: number | undefined;
}

/** Inode numbers of the first namespaces: include/linux/proc_ns.h, PROC_USER_INIT_INO, PROC_PID_INIT_INO. */
const FIRST_USER_NAMESPACE = 'user:[4026531837]';
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';
/** Enough of kallsyms to meet text symbols; per-CPU symbols at address 0 come first on older kernels. */
const KALLSYMS_BYTES = 256 * 1024;
const FILE_BYTES = 64 * 1024;

export function readHostFacts(roots: HostRoots = THIS_HOST): HostFacts {
  const proc = (path: string) => readText(join(roots.proc, path));
  const sysctl = (path: string) => parseInteger(proc(`sys/${path}`));
  const status = proc('self/status') ?? '';
  const kernelRelease = proc('sys/kernel/osrelease')?.trim() ?? '';
  return {
    kernelRelease,
    kernelVersion: parseKernelVersion(kernelRelease),
    architecture: process.arch,
    nodeVersion: process.versions.node,
    hasBtf: existsSync(join(roots.sys, 'kernel/btf/vmlinux')),
    capabilities: effectiveCapabilities(status),
    inUserNamespace: isOtherNamespace(join(roots.proc, 'self/ns/user'), FIRST_USER_NAMESPACE),
    inPidNamespace: isOtherNamespace(join(roots.proc, 'self/ns/pid'), FIRST_PID_NAMESPACE),
    perfEventParanoid: sysctl('kernel/perf_event_paranoid'),
    kptrRestrict: sysctl('kernel/kptr_restrict'),
    kernelSymbolsVisible: showsAddresses(readText(join(roots.proc, 'kallsyms'), KALLSYMS_BYTES)),
    unprivilegedBpfDisabled: sysctl('kernel/unprivileged_bpf_disabled'),
    bpfJit: sysctl('net/core/bpf_jit_enable'),
    lockdown: parseLockdown(readText(join(roots.sys, 'kernel/security/lockdown'))),
    cgroupVersion: readCgroupVersion(join(roots.sys, 'fs/cgroup')),
    container: readContainerHint(roots),
    openFiles: parseLimit(proc('self/limits') ?? '', 'open files'),
    cpus: countCpus(readText(join(roots.sys, 'devices/system/cpu/online'))),
    memlockBytes: parseLimit(proc('self/limits') ?? '', 'locked memory'),
  };
}

/** Each capability that the agent uses and this process lacks, with what it costs; fatal ones first. */
export function missingCapabilities(facts: HostFacts = readHostFacts()): MissingCapability[] {
  if (facts.capabilities === undefined) return [];
  return missingFrom(facts.inUserNamespace ? 0n : facts.capabilities, {
    kernelSymbolsVisible: facts.kernelSymbolsVisible === true,
  });
}

/** First level of perf_event_paranoid that is a distribution's: the kernel's own ones end below. */
export const DISTRIBUTION_LEVEL = 3;

/** Bits of the capabilities to keep for sampling, of those that there are; some old or hardened kernels ask for more. */
export function neededCapabilities({ capabilities = 0n, ...host }: HostFacts): number[] {
  const [major, minor] = host.kernelVersion;
  // before 5.11 maps are locked memory, whose limit is raised as they are made
  const limitsMaps = major < 5 || (major === 5 && minor < 11);
  const more = [
    ...(limitsMaps ? [CAP_SYS_RESOURCE_BIT] : []),
    // levels that Debian (3) and Ubuntu (4) have added: Debian's 5.10 and 7.2 let CAP_PERFMON alone not through
    ...((host.perfEventParanoid ?? 0) >= DISTRIBUTION_LEVEL ? [CAP_SYS_ADMIN_BIT] : []),
  ];
  return [...usedCapabilities(capabilities), ...more.filter((bit) => hasCapability(capabilities, bit))];
}

/**
 * The file's first bytes as text, undefined if it is missing or not readable. No more is read: what /proc shows is made
 * as it is read, which takes 40 ms for all of kallsyms.
 */
function readText(path: string, limit = FILE_BYTES): string | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const bytes = Buffer.alloc(limit);
    let size = 0;
    while (size < limit) {
      const n = readSync(fd, bytes, size, limit - size, null);
      if (n === 0) break;
      size += n;
    }
    return bytes.toString('latin1', 0, size);
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function parseInteger(text: string | undefined): number | undefined {
  const match = /^-?\d+/.exec(text ?? '');
  return match ? Number(match[0]) : undefined;
}

function parseKernelVersion(release: string): [number, number] {
  const match = /^(\d+)\.(\d+)/.exec(release);
  return match ? [Number(match[1]), Number(match[2])] : [0, 0];
}

/** False where the link can't be read: most likely procfs is then hidden, not another namespace. */
function isOtherNamespace(path: string, first: string): boolean {
  try {
    return readlinkSync(path) !== first;
  } catch {
    return false;
  }
}

function showsAddresses(kallsyms: string | undefined): boolean | undefined {
  if (kallsyms === undefined || kallsyms === '') return undefined;
  return /^0*[1-9a-f][0-9a-f]* [tT] /m.test(kallsyms);
}

/** The file lists all modes and puts the active one in brackets: `none [integrity] confidentiality`. */
function parseLockdown(text: string | undefined): HostFacts['lockdown'] {
  const active = /\[(none|integrity|confidentiality)\]/.exec(text ?? '')?.[1];
  return (active as HostFacts['lockdown'] | undefined) ?? 'unknown';
}

function readCgroupVersion(path: string): HostFacts['cgroupVersion'] {
  if (existsSync(join(path, 'cgroup.controllers'))) return 2;
  if (existsSync(join(path, 'unified/cgroup.controllers'))) return 'hybrid';
  if (existsSync(join(path, 'cpu')) || existsSync(join(path, 'memory'))) return 1;
  return 'unknown';
}

function readContainerHint(roots: HostRoots): string {
  if (existsSync(join(roots.root, '.dockerenv'))) return 'docker';
  if (existsSync(join(roots.root, 'run/.containerenv'))) return 'podman';
  if (existsSync(join(roots.root, 'var/run/secrets/kubernetes.io'))) return 'kubernetes';
  return readText(join(roots.root, 'run/systemd/container'))?.trim() ?? '';
}

/** The soft limit of /proc/PID/limits. */
function parseLimit(limits: string, name: string): number | undefined {
  const soft = new RegExp(`^Max ${name}\\s+(unlimited|\\d+)`, 'm').exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? Infinity : Number(soft);
}

function countCpus(online: string | undefined): number {
  try {
    return Math.max(1, parseCpuList(online ?? '').length);
  } catch {
    return 1;
  }
}
