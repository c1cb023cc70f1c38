/** Judges a host's facts: can it be profiled, what is lost, and which command changes that. */
import {
  CAP_SYS_ADMIN_BIT,
  CAP_SYS_RESOURCE_BIT,
  capabilityNames,
  describeMissing,
  hasCapability,
  type MissingCapability,
} from './capabilities.ts';
import { DISTRIBUTION_LEVEL, type HostFacts, missingCapabilities } from './host-facts.ts';

export interface Check {
  /** Short and stable, for scripts: `kernel`, `btf`, `capability CAP_BPF`, … */
  name: string;
  status: 'ok' | 'degraded' | 'fatal';
  message: string;
  /** The command, or where no command can do it the step, that makes it ok. */
  fix?: string;
}

type Judge = (facts: HostFacts) => Check | Check[];

const ok = (name: string, message: string): Check => ({ name, status: 'ok', message });
const degraded = (name: string, message: string, fix: string): Check => ({
  name,
  status: 'degraded',
  message,
  fix,
});
const fatal = (name: string, message: string, fix: string): Check => ({
  name,
  status: 'fatal',
  message,
  fix,
});

const isBefore = (version: readonly [number, number], major: number, minor: number): boolean =>
  version[0] < major || (version[0] === major && version[1] < minor);

/** Room for the maps; Linux 5.11 moved them from RLIMIT_MEMLOCK to memory cgroups. */
const MEMLOCK_BYTES = 256 * 1024 * 1024;

function checkKernel({ kernelRelease, kernelVersion }: HostFacts): Check {
  if (kernelVersion[0] === 0) {
    return degraded('kernel', `version unknown ('${kernelRelease}'), 5.10 or newer is needed`, 'uname -r');
  }
  return isBefore(kernelVersion, 5, 10)
    ? fatal('kernel', `${kernelRelease} is too old`, 'boot Linux 5.10 or newer')
    : ok('kernel', kernelRelease);
}

function checkArchitecture({ architecture }: HostFacts): Check {
  const name = { x64: 'x86_64', arm64: 'arm64' }[architecture];
  return name
    ? ok('architecture', name)
    : fatal('architecture', `${architecture} is not supported`, 'run it on an x86_64 or arm64 machine');
}

function checkNode({ nodeVersion }: HostFacts): Check {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number);
  const good = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
  return good
    ? ok('node', nodeVersion)
    : fatal('node', `${nodeVersion} is not supported`, 'install Node 20.19, 22.12 or newer');
}

function checkBtf({ hasBtf }: HostFacts): Check {
  return hasBtf
    ? ok('btf', 'the kernel describes its types')
    : fatal(
        'btf',
        '/sys/kernel/btf/vmlinux is missing: kernel structures cannot be read',
        'boot a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian, Ubuntu, Fedora and RHEL kernels have it), and mount /sys',
      );
}

function checkProc({ capabilities }: HostFacts): Check {
  return capabilities === undefined
    ? fatal(
        'proc',
        '/proc/self/status can not be read: nothing is known of any process',
        'mount -t proc proc /proc',
      )
    : ok('proc', 'mounted');
}

function checkUserNamespace({ inUserNamespace }: HostFacts): Check | undefined {
  if (!inUserNamespace) return undefined;
  return fatal(
    'capabilities',
    'this is a user namespace, in which capabilities give no right to BPF and perf events',
    'run it outside the namespace: as root of the host, or in a container that is not rootless',
  );
}

function checkCapabilities(facts: HostFacts): Check[] {
  if (facts.capabilities === undefined) return [checkProc(facts)];
  const namespace = checkUserNamespace(facts);
  if (namespace) return [namespace];
  const missing = missingCapabilities(facts);
  if (missing.length === 0) return [ok('capabilities', 'all that it uses')];
  const rest = capabilityNames.filter((name) => !missing.some((m) => m.name === name));
  return [
    ...missing.map(judgeMissing),
    ...(rest.length === 0 ? [] : [ok('capabilities', `has ${rest.join(', ')}`)]),
  ];
}

function judgeMissing(missing: MissingCapability): Check {
  const fix = `run it with sudo, or grant ${missing.name} (systemd: AmbientCapabilities=${missing.name}, docker: --cap-add=${missing.name.slice(4)})`;
  return {
    name: `capability ${missing.name}`,
    status: missing.severity,
    message: describeMissing(missing),
    fix,
  };
}

function checkParanoid({ perfEventParanoid: level, capabilities = 0n }: HostFacts): Check {
  if (level === undefined) {
    return fatal(
      'perf_event_paranoid',
      'the kernel has no perf events, or /proc/sys is hidden',
      'boot a kernel with CONFIG_PERF_EVENTS=y, and mount /proc',
    );
  }
  // Debian's level 3 and Ubuntu's 4 ask for CAP_SYS_ADMIN
  return level >= DISTRIBUTION_LEVEL && !hasCapability(capabilities, CAP_SYS_ADMIN_BIT)
    ? degraded(
        'perf_event_paranoid',
        `${level}: some kernels with this level refuse perf events without CAP_SYS_ADMIN`,
        'sudo sysctl -w kernel.perf_event_paranoid=2',
      )
    : ok('perf_event_paranoid', `${level}, which CAP_PERFMON overrides`);
}

function checkKernelSymbols(facts: HostFacts): Check | Check[] {
  if (facts.kernelSymbolsVisible === true) return ok('kernel symbols', 'visible');
  const restrict = facts.kptrRestrict;
  if (restrict !== undefined && restrict >= 2) {
    return degraded(
      'kernel symbols',
      `hidden from everybody (kernel.kptr_restrict = ${restrict}): kernel frames are addresses`,
      'sudo sysctl -w kernel.kptr_restrict=1',
    );
  }
  // Then the missing capability has said it.
  if (missingCapabilities(facts).some((missing) => missing.name === 'CAP_SYSLOG')) return [];
  return facts.kernelSymbolsVisible === undefined
    ? degraded('kernel symbols', '/proc/kallsyms cannot be read: kernel frames are addresses', 'mount /proc')
    : degraded(
        'kernel symbols',
        'hidden: kernel frames are addresses',
        'run it with sudo, or grant CAP_SYSLOG',
      );
}

function checkUnprivilegedBpf({ unprivilegedBpfDisabled: value }: HostFacts): Check {
  return ok(
    'unprivileged_bpf_disabled',
    value === undefined ? 'not set' : `${value}, which does not matter with CAP_BPF`,
  );
}

function checkJit({ bpfJit }: HostFacts): Check {
  if (bpfJit === undefined) return ok('bpf jit', 'unknown in this network namespace');
  return bpfJit === 0
    ? degraded(
        'bpf jit',
        'off: BPF is interpreted, and a sample costs many times more',
        'sudo sysctl -w net.core.bpf_jit_enable=1',
      )
    : ok('bpf jit', 'on');
}

function checkLockdown({ lockdown, kernelVersion }: HostFacts): Check {
  if (lockdown !== 'confidentiality') return ok('lockdown', lockdown === 'unknown' ? 'none seen' : lockdown);
  return isBefore(kernelVersion, 6, 2)
    ? fatal(
        'lockdown',
        'confidentiality: the kernel forbids BPF to call what reads kernel memory, and has no other way before Linux 6.2',
        'boot Linux 6.2 or newer, or with lockdown=integrity on the kernel command line',
      )
    : ok('lockdown', 'confidentiality, which forbids nothing that is used here');
}

/** The kernel side reads the paths of either version, mounted or not. */
function checkCgroups({ cgroupVersion }: HostFacts): Check {
  return ok('cgroups', cgroupVersion === 'unknown' ? 'not mounted here' : `version ${cgroupVersion}`);
}

function checkPidNamespace({ inPidNamespace, container }: HostFacts): Check[] {
  const checks = container === '' ? [] : [ok('container', `this looks like a container (${container})`)];
  if (!inPidNamespace) return [...checks, ok('pid namespace', "the host's")];
  return [
    ...checks,
    fatal(
      'pid namespace',
      "not the host's: the kernel reports PIDs that do not exist here, so no file can be opened",
      "run it in the host's PID namespace (docker: --pid=host, Kubernetes: hostPID: true)",
    ),
  ];
}

function checkMemlock({ kernelVersion, memlockBytes, capabilities = 0n }: HostFacts): Check[] {
  if (!isBefore(kernelVersion, 5, 11) || memlockBytes === undefined) return [];
  if (memlockBytes >= MEMLOCK_BYTES || hasCapability(capabilities, CAP_SYS_RESOURCE_BIT)) {
    return [ok('memlock', memlockBytes === Infinity ? 'unlimited' : `${memlockBytes} bytes`)];
  }
  return [
    fatal(
      'memlock',
      `${memlockBytes} bytes: before Linux 5.11 this limits BPF maps, which need ${MEMLOCK_BYTES}`,
      'ulimit -l unlimited (systemd: LimitMEMLOCK=infinity, docker: --ulimit memlock=-1)',
    ),
  ];
}

/** The agent's own, one for each CPU on top; what is beyond is for programs that are read. */
const LEAST_OPEN_FILES = 128;
const GOOD_OPEN_FILES = 1024;

function checkOpenFiles({ openFiles, cpus }: HostFacts): Check {
  const [least, good] = [LEAST_OPEN_FILES + cpus, GOOD_OPEN_FILES + cpus];
  if (openFiles === undefined || openFiles >= good)
    return ok(
      'open files',
      openFiles === undefined || openFiles === Infinity ? 'not limited' : `up to ${openFiles}`,
    );
  const fix = `ulimit -n ${good} (systemd: LimitNOFILE=${good}, docker: --ulimit nofile=${good})`;
  return openFiles < least
    ? fatal('open files', `at most ${openFiles}, and ${least} are needed on ${cpus} CPUs`, fix)
    : degraded(
        'open files',
        `at most ${openFiles}: programs may stay nameless where many start at once`,
        fix,
      );
}

/** @param uprobeMulti the kernel has been asked for it */
export function checkProbes({ capabilities = 0n }: HostFacts, uprobeMulti: boolean): Check {
  const [name, what] = ['probes', 'in user code (events malloc, uprobe, uretprobe, usdt)'];
  if (uprobeMulti) return ok(name, `can be set ${what}`);
  return hasCapability(capabilities, CAP_SYS_ADMIN_BIT)
    ? ok(name, `can be set ${what}, with CAP_SYS_ADMIN, which Linux before 6.6 asks for`)
    : degraded(
        name,
        `can't be set ${what}: Linux before 6.6 asks for CAP_SYS_ADMIN`,
        'boot Linux 6.6 or newer, or grant CAP_SYS_ADMIN (systemd: probes.conf, docker: --cap-add=SYS_ADMIN)',
      );
}

const JUDGES: readonly Judge[] = [
  checkKernel,
  checkArchitecture,
  checkNode,
  checkBtf,
  checkCapabilities,
  checkPidNamespace,
  checkLockdown,
  checkParanoid,
  checkUnprivilegedBpf,
  checkKernelSymbols,
  checkJit,
  checkMemlock,
  checkOpenFiles,
  checkCgroups,
];

/** The check that no right and no setting can make up for: the agent refuses as the doctor does. */
export const checkPlace = (facts: HostFacts): Check | undefined =>
  [
    checkProc(facts),
    checkUserNamespace(facts),
    checkPidNamespace(facts),
    checkBtf(facts),
    checkOpenFiles(facts),
  ]
    .flat()
    .find((check) => check?.status === 'fatal');

/** One check a line, in the order in which a person should read them. */
export const checkHost = (facts: HostFacts): Check[] => JUDGES.flatMap((judge) => judge(facts));
