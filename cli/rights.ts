/** Rights that a process gives up once it has what takes them: agent and collector keep what they use. */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { CAPABILITY_BITS } from '../agent/tracer/capabilities.ts';
import { type HostFacts, neededCapabilities } from '../agent/tracer/host-facts.ts';
import { loadNative } from '../agent/tracer/native.ts';

type Bit = number;

const maskOf = (bits: Iterable<Bit>): bigint =>
  [...bits].reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n);

/** Keeps what sampling needs, and `also`. Throws where they can't be given up. */
export function keepSamplingRights(facts: HostFacts, also: readonly Bit[]): void {
  const kept = maskOf([...neededCapabilities(facts), ...also]);
  loadNative().dropRights(kept, kept);
}

/** A recording is written to where its user wants it, which root may do by this right only if it is not root's. */
export function rightsToWrite(fileName: string): Bit[] {
  const { uid } = statSync(dirname(fileName));
  return uid === process.geteuid?.() ? [] : [CAPABILITY_BITS.CAP_DAC_OVERRIDE];
}

/** To end a command that became another user. */
export const RIGHTS_TO_END_COMMANDS: readonly Bit[] = [CAPABILITY_BITS.CAP_KILL];

/**
 * Of a collector: `become` changes its user, for which it has the right until then. One that stays root keeps `also`.
 * Throws where they can't be given up.
 */
export function giveUpRights(become: () => void, also: readonly Bit[] = []): void {
  const native = loadNative();
  const { CAP_SETUID, CAP_SETGID, CAP_SETPCAP } = CAPABILITY_BITS;
  native.dropRights(maskOf([CAP_SETUID, CAP_SETGID, CAP_SETPCAP, ...also]), maskOf(also));
  become();
  native.dropRights(maskOf(also), maskOf(also));
}
