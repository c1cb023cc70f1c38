/** Verifier statistics of each BPF program on the running kernel: loads all of them, without attaching any. */

import { loadNative, type NativeBpfObject } from '../base/native.ts';
import { Targets } from '../records/records.gen.ts';
import { type BpfSettings, explainLoadFailure, makeOpener, openBase, samplerObjects } from './bpf-object.ts';
import { openEventPrograms } from './event-sources.ts';
import { openSwitchPrograms, openWaitSampler } from './off-cpu.ts';
import type { OpenObject } from './open-object.ts';
import type { SamplerPart } from './sampler-part.ts';
import type { OpenSampler } from './samplers.ts';
import { openLateStacks, openThreadNotes } from './waiting-stacks.ts';

export interface ProgramFigures {
  program: string;
  /** Instructions that the verifier walked through, over all paths; the kernel refuses a program beyond 1,000,000. */
  verified: number;
  /** Time that it took the verifier, ms. */
  loadMs: number;
}

const SETTINGS: Omit<BpfSettings, 'runtimes'> = {
  maxUserFrames: 1023,
  targets: Targets.CHOSEN,
  sendIdleFrames: false,
  ringBytes: 1 << 20,
  maxFiles: 1024,
  maxTables: 1024,
};

/** The sampler alone, with each runtime, and with all of them. Throws CannotProfile where the kernel refuses one. */
export function measurePrograms(known: readonly SamplerPart[]): ProgramFigures[] {
  const native = loadNative();
  const settings = { ...SETTINGS, runtimes: known };
  const opener = makeOpener(native, settings);
  const base = openBase(opener, settings);
  let switches: NativeBpfObject | undefined;
  const { open, openDeferring } = samplerObjects(native, opener);
  const samplers = [[], ...known.map((plugin) => [plugin]), known];
  try {
    const ofBase = measure(base, '');
    switches = openSwitchPrograms(opener, base);
    const atSwitches = switches;
    return [
      ...ofBase,
      ...measure(atSwitches, ''),
      ...measureNotes(opener, [base, atSwitches]),
      ...samplers.flatMap((runtimes) => {
        const sampler = open(runtimes, base);
        try {
          const suffix = runtimes.map(({ name }) => `+${name}`).join('');
          return [
            ...measure(sampler, suffix),
            ...measureDeferring(openDeferring, runtimes, sampler, suffix),
            ...measureWaits(opener, runtimes, [sampler, atSwitches], suffix),
            ...(runtimes === known ? measureEvents(opener, known, [sampler]) : []),
          ];
        } finally {
          sampler.close();
        }
      }),
    ];
  } finally {
    switches?.close();
    base.close();
  }
}

/** What is attached for --event, and what takes the stacks with all runtimes. */
function measureEvents(
  open: OpenObject,
  known: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
): ProgramFigures[] {
  const attached = openEventPrograms(open, [], share);
  let takers: NativeBpfObject[] = [];
  try {
    const ofAttached = attached.flatMap((object) => measure(object, ''));
    takers = openEventPrograms(open, known, [...share, ...attached]);
    const suffix = known.map(({ name }) => `+${name}`).join('');
    return [...ofAttached, ...takers.flatMap((object) => measure(object, suffix))];
  } finally {
    for (const object of [...takers, ...attached]) object.close();
  }
}

function measureWaits(
  open: OpenObject,
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
  suffix: string,
): ProgramFigures[] {
  const object = openWaitSampler(open, runtimes, share);
  try {
    return [...measure(object, suffix), ...measureLate(open, runtimes, share, suffix)];
  } finally {
    object.close();
  }
}

function measureNotes(open: OpenObject, share: readonly NativeBpfObject[]): ProgramFigures[] {
  const object = openThreadNotes(open, share);
  try {
    return measure(object, '');
  } finally {
    object.close();
  }
}

function measureLate(
  open: OpenObject,
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
  suffix: string,
): ProgramFigures[] {
  const object = openLateStacks(open, runtimes, share);
  try {
    return measure(object, suffix);
  } catch (error) {
    // the verifier gave up: such a runtime is left out, see WaitingStacks
    if (!/BPF program is too large/.test((error as Error).message)) throw error;
    return [];
  } finally {
    object.close();
  }
}

function measureDeferring(
  open: OpenSampler | undefined,
  runtimes: readonly SamplerPart[],
  sampler: NativeBpfObject,
  suffix: string,
): ProgramFigures[] {
  const object = open?.(runtimes, sampler);
  try {
    return object ? measure(object, suffix) : [];
  } finally {
    object?.close();
  }
}

/** Loads it. Throws CannotProfile, with what the verifier said, where the kernel refuses a program. */
export function measure(object: NativeBpfObject, suffix: string): ProgramFigures[] {
  object.askForStats();
  try {
    object.loadSync();
  } catch (error) {
    throw explainLoadFailure(withVerifierLog(error as Error & { log?: string }, object.verifierStats()));
  }
  return Object.entries(object.verifierStats()).map(([name, text]) =>
    parseVerifierStats(name + suffix, text),
  );
}

/** Where figures are asked for, libbpf leaves the verifier's words to us, the reason of a refusal included. */
function withVerifierLog<E extends Error & { log?: string }>(error: E, texts: Record<string, string>): E {
  const name = /prog '(\w+)': BPF program load failed/.exec(error.log ?? '')?.[1];
  if (name !== undefined) error.log = `${error.log}\n${name}:\n${texts[name] ?? ''}`;
  return error;
}

/** Reads "verification time 123 usec" and "processed 456 insns (limit 1000000) …": kernel/bpf/verifier.c, 5.2 on. */
export function parseVerifierStats(program: string, text: string): ProgramFigures {
  const verified = /^processed (\d+) insns/m.exec(text)?.[1];
  const usec = /^verification time (\d+) usec/m.exec(text)?.[1];
  if (!verified || !usec) throw new Error(`the kernel gave no figures on the program ${program}: "${text}"`);
  return { program, verified: Number(verified), loadMs: Number(usec) / 1000 };
}
