/** The Linux capabilities that the agent uses, and what each one is for. Bits: include/uapi/linux/capability.h. */

export type CapabilityName =
  | 'CAP_BPF'
  | 'CAP_PERFMON'
  | 'CAP_SYS_PTRACE'
  | 'CAP_DAC_READ_SEARCH'
  | 'CAP_CHECKPOINT_RESTORE'
  | 'CAP_SYSLOG';

export interface MissingCapability {
  name: CapabilityName;
  severity: 'fatal' | 'degraded';
  /** A clause that follows "CAP_X is missing: ". */
  cost: string;
}

/** Capabilities that have other uses than sampling, too. */
export const CAPABILITY_BITS = {
  CAP_DAC_OVERRIDE: 1,
  CAP_DAC_READ_SEARCH: 2,
  CAP_FOWNER: 3,
  CAP_KILL: 5,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
} as const;

const DAC_OVERRIDE = CAPABILITY_BITS.CAP_DAC_OVERRIDE;
export const CAP_SYS_ADMIN_BIT = 21;
export const CAP_SYS_RESOURCE_BIT = 24;

interface Need extends MissingCapability {
  bit: number;
  /** Older or wider capabilities that the kernel takes in its place. */
  coveredBy: readonly number[];
}

/** Fatal ones first. */
const NEEDS: readonly Need[] = [
  {
    name: 'CAP_BPF',
    bit: 39,
    coveredBy: [CAP_SYS_ADMIN_BIT],
    severity: 'fatal',
    cost: 'BPF programs and maps cannot be loaded',
  },
  {
    name: 'CAP_PERFMON',
    bit: 38,
    coveredBy: [CAP_SYS_ADMIN_BIT],
    severity: 'fatal',
    cost: 'CPUs cannot be sampled, and BPF may not read kernel memory',
  },
  {
    name: 'CAP_SYS_PTRACE',
    bit: 19,
    coveredBy: [],
    severity: 'degraded',
    cost: 'files of processes of other users cannot be opened, so their stacks are cut and nameless',
  },
  {
    name: 'CAP_DAC_READ_SEARCH',
    bit: 2,
    coveredBy: [DAC_OVERRIDE],
    severity: 'degraded',
    cost: 'executables that this user may not read stay without unwind tables and names',
  },
  {
    name: 'CAP_CHECKPOINT_RESTORE',
    bit: 40,
    coveredBy: [CAP_SYS_ADMIN_BIT],
    severity: 'degraded',
    cost: 'files deleted or replaced while mapped cannot be opened, so their frames stay nameless',
  },
  {
    name: 'CAP_SYSLOG',
    bit: 34,
    coveredBy: [],
    severity: 'degraded',
    cost: 'kernel symbols are hidden, so kernel frames are addresses',
  },
];

/** The effective set of `/proc/PID/status`, bit n for capability n; undefined if it has none. */
export function effectiveCapabilities(status: string): bigint | undefined {
  const hex = /^CapEff:\s*([0-9a-f]{1,16})$/m.exec(status)?.[1];
  return hex === undefined ? undefined : BigInt(`0x${hex}`);
}

export const hasCapability = (set: bigint, bit: number): boolean => ((set >> BigInt(bit)) & 1n) === 1n;

/** CAP_SYSLOG is not missed where the kernel shows its symbols to everybody. */
export function missingFrom(set: bigint, host: { kernelSymbolsVisible: boolean }): MissingCapability[] {
  return NEEDS.filter(
    (need) =>
      ![need.bit, ...need.coveredBy].some((bit) => hasCapability(set, bit)) &&
      !(need.name === 'CAP_SYSLOG' && host.kernelSymbolsVisible),
  ).map(({ name, severity, cost }) => ({ name, severity, cost }));
}

/** The sentence that the log and the doctor print. */
export const describeMissing = (missing: MissingCapability): string =>
  `${missing.name} is missing: ${missing.cost}`;

export const capabilityNames: readonly CapabilityName[] = NEEDS.map((need) => need.name);

/** Bits of the capabilities in `set` that sampling takes: the narrower one where it has both. */
export function usedCapabilities(set: bigint): number[] {
  const has = (bit: number): boolean => hasCapability(set, bit);
  return [...new Set(NEEDS.flatMap(({ bit, coveredBy }) => (has(bit) ? [bit] : coveredBy.filter(has))))];
}
