/**
 * Attaches programs in user code: by one link for all places that a program has in a file, where the kernel has such links
 * (uprobe_multi, Linux 6.6), else by a perf event and a link for each. docs/decisions/bpf/probe-links.md
 */
import { getSystemErrorMap } from 'node:util';
import type { NativeBpfObject } from '../base/native.ts';
import type { ProbeSite, RefusedSite } from '../events/probe-site.ts';

/** Of the machine: other places would have the same answer. */
const ERRORS_OF_ALL: ReadonlySet<string | undefined> = new Set([
  ...['EPERM', 'EACCES', 'EMFILE', 'ENFILE', 'ENOMEM'],
]);
/** Of the file, such as the mapping of a process that has ended: its other places would have the same answer. */
const ERRORS_OF_FILE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ESRCH', 'ESTALE', 'ELOOP']);

/** ENOTSUPP, which the kernel keeps to itself elsewhere. */
const BAD_INSTRUCTION = 524;

/**
 * @param uprobeMulti the object was opened for it
 * @returns places that the kernel refuses; the others are probed. Throws what it says where it would refuse all.
 */
export function attachSites(
  object: NativeBpfObject,
  sites: readonly ProbeSite[],
  uprobeMulti: boolean,
): RefusedSite[] {
  return uprobeMulti
    ? sitesByLink(sites).flatMap((some) => attach(some, (sites) => attachTogether(object, sites)))
    : sites.flatMap((site) => attach([site], () => attachOne(object, site)));
}

function sitesByLink(sites: readonly ProbeSite[]): ProbeSite[][] {
  const byLink = new Map<string, ProbeSite[]>();
  for (const site of sites) {
    const key = `${site.program} ${site.isAtReturn} ${site.path}`;
    byLink.set(key, [...(byLink.get(key) ?? []), site]);
  }
  return [...byLink.values()];
}

/** The kernel does not say which of them it refuses: halves are tried. */
function attach(
  sites: readonly ProbeSite[],
  attachAll: (sites: readonly ProbeSite[]) => void,
): RefusedSite[] {
  try {
    attachAll(sites);
    return [];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (ERRORS_OF_ALL.has(code)) throw error;
    if (sites.length === 1 || ERRORS_OF_FILE.has(code)) {
      const why = whyRefused(error as NodeJS.ErrnoException);
      return sites.map((site) => ({ site, why }));
    }
    const half = sites.length >> 1;
    return [sites.slice(0, half), sites.slice(half)].flatMap((some) => attach(some, attachAll));
  }
}

function whyRefused({ errno = 0, message }: NodeJS.ErrnoException): string {
  if (errno === BAD_INSTRUCTION) return 'the kernel can run no such instruction apart';
  return getSystemErrorMap().get(-errno)?.[1] ?? message;
}

/** They have program, path and kind in common. */
function attachTogether(object: NativeBpfObject, sites: readonly ProbeSite[]): void {
  const { program, path, isAtReturn } = sites[0]!;
  const offsets = BigUint64Array.from(sites, ({ offset }) => BigInt(offset));
  const semaphores = BigUint64Array.from(sites, ({ semaphore }) => BigInt(semaphore));
  object.attachUprobes(program, path, offsets, semaphores, isAtReturn);
}

function attachOne(
  object: NativeBpfObject,
  { program, path, offset, semaphore, isAtReturn }: ProbeSite,
): void {
  object.attachUprobe(program, path, offset, semaphore, isAtReturn);
}
