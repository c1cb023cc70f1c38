/** Rights that a process gives up once it has what takes them: agent and collector keep what they use. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { loadNative } from '../../agent/base/native.ts';
import { CAPABILITY_BITS } from '../../agent/host/capabilities.ts';
import { type HostFacts, neededCapabilities } from '../../agent/host/host-facts.ts';

type Bit = number;

const maskOf = (bits: Iterable<Bit>): bigint =>
  [...bits].reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n);

/** Keeps what sampling needs, and `also`. Throws where they can't be given up. */
export function keepSamplingRights(facts: HostFacts, also: readonly Bit[]): void {
  const kept = maskOf([...neededCapabilities(facts), ...also]);
  loadNative().dropRights(kept, kept);
}

/** A recording is written to where its user wants it: root needs a right for what is not root's. */
export function rightsToWrite(fileName: string): Bit[] {
  const isOurs = (path: string): boolean =>
    (statSync(path, { throwIfNoEntry: false })?.uid ?? process.geteuid?.()) === process.geteuid?.();
  const { CAP_DAC_OVERRIDE, CAP_FOWNER } = CAPABILITY_BITS;
  // CAP_FOWNER: to replace it in a directory with the sticky bit
  return isOurs(dirname(fileName)) && isOurs(fileName) ? [] : [CAP_DAC_OVERRIDE, CAP_FOWNER];
}

/** To end a command that became another user. */
export const RIGHTS_TO_END_COMMANDS: readonly Bit[] = [CAPABILITY_BITS.CAP_KILL];

/**
 * Of a collector: `become` changes its user, for which it has the right until then. One that stays root keeps `also`.
 * Where they can't be given up (no /proc, no addon), which `warn` is told, it has become that user at least.
 */
export function giveUpRights(become: () => void, also: readonly Bit[], warn: (text: string) => void): void {
  const { CAP_SETUID, CAP_SETGID, CAP_SETPCAP } = CAPABILITY_BITS;
  let isTold = false;
  const drop = (permitted: readonly Bit[]): void => {
    try {
      loadNative().dropRights(maskOf(permitted), maskOf(also));
    } catch (error) {
      if (isTold) return;
      isTold = true;
      warn(`the collector keeps rights that it does not need: ${(error as Error).message}`);
    }
  };
  drop([CAP_SETUID, CAP_SETGID, CAP_SETPCAP, ...also]);
  become();
  drop(also);
}
