import type { CgroupOwner } from './cgroup-owner.ts';

/** Kernel threads are many, and their names change with the work at hand: one service for all of them. */
export const KERNEL_SERVICE = 'unknown_service:kernel';

/**
 * `service.name` of a process, in a first form: the systemd unit that it runs in, else OpenTelemetry's default
 * for a service that nobody named, `unknown_service:` and the executable's name (semantic conventions, resource,
 * "service.name"). Never a thread's name: see docs/decisions/traces-and-export/service-names.md.
 */
export function serviceNameOf(owner: CgroupOwner | undefined, executableName: string): string {
  if (owner && owner.unit !== '') return owner.unit;
  return executableName === '' ? 'unknown_service' : `unknown_service:${executableName}`;
}
