/** Loads the BPF programs with the settings of this machine, and says clearly what stands in the way. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CannotProfile } from '../base/cannot-profile.ts';
import type { KernelFeatures, Native, NativeBpfObject } from '../base/native.ts';
import { packageRoot } from '../base/package-root.ts';
import type { EventSourcesOptions } from '../events/event-types.ts';
import { onlineCpus } from '../host/cpus.ts';

import { CONFIG, Context, EF_DEFERRED_PER_CPU, Targets } from '../records/records.gen.ts';
import type { EventSettings } from './event-config.ts';
import { EventSources, type FindCode } from './event-sources.ts';
import type { ReadPages } from './kept-pages.ts';
import { OffCpu, type OffCpuOptions, type OnThreads, sampledState, weightOf } from './off-cpu.ts';
import type { OpenObject } from './open-object.ts';
import { type SamplerPart, THREAD_CONTEXTS } from './sampler-part.ts';
import { MAPS_OF_RUNTIMES, type SamplerObjects, Samplers } from './samplers.ts';

export interface BpfSettings {
  maxUserFrames: number;
  /** What the processes in the map `targets` and their children are: of {@link Targets}. */
  targets: number;
  sendIdleFrames: boolean;
  ringBytes: number;
  maxFiles: number;
  maxTables: number;
  /** All that the objects have code and maps for. */
  runtimes: readonly SamplerPart[];
  /** Read labels that programs give their samples; unless false. */
  labels?: boolean | undefined;
  /** Tell the goroutine of each sample in Go. */
  goroutineIds?: boolean | undefined;
  /** Undefined: waits are not sampled. */
  offCpu?: OffCpuOptions | undefined;
  /** Undefined: no other events are sampled. */
  events?: EventSourcesOptions | undefined;
  findCode?: FindCode | undefined;
  onThreads?: OnThreads | undefined;
  readPages?: ReadPages | undefined;
}

/**
 * A kernel stack, without KASAN, has at least a page (arch/{x86,arm64}/include/asm); needed only before 5.15, where no
 * helper says where the user registers are.
 */
const THREAD_SIZE = 16384;
/** struct pt_regs; on arm64 from 5.10 to 5.14. */
const PT_REGS_BYTES: Readonly<Record<string, number>> = { x64: 21 * 8, arm64: 42 * 8 };

function encodeConfig(
  settings: BpfSettings,
  features: KernelFeatures,
  runtimes: readonly SamplerPart[],
  context: number,
  event: EventSettings | undefined,
): Buffer {
  const config = Buffer.alloc(CONFIG.bytes);
  config.writeUInt32LE(features.taskPtRegs ? 1 : 0, CONFIG.hasTaskPtRegs);
  config.writeUInt32LE(settings.maxUserFrames, CONFIG.maxUserFrames);
  config.writeUInt32LE(settings.targets, CONFIG.targets);
  config.writeUInt32LE(process.pid, CONFIG.ownTgid);
  config.writeUInt32LE(settings.sendIdleFrames ? 1 : 0, CONFIG.sendIdle);
  config.writeUInt32LE(settings.ringBytes / 4, CONFIG.wakeBytes);
  config.writeUInt32LE(PT_REGS_BYTES[process.arch] ?? 0, CONFIG.userRegsFromStackTop);
  config.writeUInt32LE(Math.max(THREAD_SIZE, features.pageBytes), CONFIG.threadSize);
  config.writeUInt32LE(Math.log2(features.pageBytes), CONFIG.pageShift);
  config.writeUInt32LE(deferringObject(features) ? 1 : 0, CONFIG.canDefer);
  config.writeUInt32LE(context, CONFIG.context);
  config.writeUInt32LE(
    settings.offCpu?.probability ? weightOf(settings.offCpu.probability) : 0,
    CONFIG.waitWeight,
  );
  config.writeUInt32LE(settings.offCpu?.budget ?? 0, CONFIG.waitBudget);
  config.writeUInt32LE(settings.offCpu ? sampledState(settings.offCpu) : 0, CONFIG.waitState);
  const scheduler = context === Context.SWITCH ? settings.findCode?.('__schedule') : undefined;
  config.writeBigUInt64LE(scheduler?.start ?? 0n, CONFIG.schedulerStart);
  config.writeBigUInt64LE(scheduler?.end ?? 0n, CONFIG.schedulerEnd);
  config.writeBigUInt64LE(features.codeAddressMask, CONFIG.codeAddressMask);
  config.writeUInt32LE(runtimes.reduce((mask, { id }) => mask | (1 << id), 0) >>> 0, CONFIG.runtimes);
  config.writeUInt32LE(settings.labels === false ? 1 : 0, CONFIG.leavesLabels);
  config.writeUInt32LE(settings.goroutineIds ? 1 : 0, CONFIG.goroutineIds);
  event?.(config);
  return config;
}

interface SystemFailure extends Error {
  code?: string;
  log?: string;
}

export function explainLoadFailure(error: SystemFailure): CannotProfile {
  if (error instanceof CannotProfile) return error;
  if (error.code === 'EPERM' || error.code === 'EACCES') {
    const release = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim();
    return new CannotProfile(
      `the kernel (${release}) refused to load the BPF programs: ${error.code}. Run as root, or with CAP_BPF and CAP_PERFMON; "everyframe doctor" says what is missing.\n${lastLines(error.log)}`,
    );
  }
  return new CannotProfile(
    `${error.message}. Please report this with the lines below.\n${lastLines(error.log)}`,
  );
}

const lastLines = (log = ''): string => log.trimEnd().split('\n').slice(-12).join('\n');

const MAIN_OBJECT = 'everyframe.bpf.o';
/** libbpf 1.1 also looks in the types of modules for one that is missing, such as maple_tree before 6.1, which takes CAP_SYS_ADMIN. */
const KERNEL_TYPES = '/sys/kernel/btf/vmlinux';

export function makeOpener(native: Native, settings: BpfSettings): OpenObject {
  const features = native.probeFeatures();
  const uprobeMulti = native.hasUprobeMulti();
  const ending = features.rdonlyCast ? '.bpf.o' : '-6.1.bpf.o';
  const kernelTypes = features.rdonlyCast ? '' : KERNEL_TYPES;
  return (file, { programs, context, runtimes = [], event, maxEntries = {}, share = [] }) =>
    new native.BpfObject(join(packageRoot(), 'build', file.replace('.bpf.o', ending)), {
      rodata: encodeConfig(settings, features, runtimes, context, event),
      maxEntries,
      programs,
      skipMaps: [
        ...[...settings.runtimes, THREAD_CONTEXTS]
          .filter((part) => !runtimes.includes(part))
          .map(({ map }) => map),
        ...(runtimes.length === 0 ? MAPS_OF_RUNTIMES : []),
      ],
      share,
      uprobeMulti,
      kernelReads: features.kernelReads,
      kernelTypes,
    });
}

/** The small programs beside the sampler, and all maps but those of runtimes. */
export function openBase(open: OpenObject, settings: BpfSettings): NativeBpfObject {
  const { ringBytes, maxFiles, maxTables } = settings;
  return open(MAIN_OBJECT, {
    programs: basePrograms(settings),
    context: Context.EVENT,
    maxEntries: { records: ringBytes, files: maxFiles, tables: maxTables },
  });
}

export function samplerObjects(native: Native, open: OpenObject): SamplerObjects {
  const deferring = deferringObject(native.probeFeatures());
  const maxEntries = { deferred: EF_DEFERRED_PER_CPU * (Math.max(...onlineCpus()) + 1) };
  return {
    open: (runtimes, share) =>
      open(MAIN_OBJECT, { programs: ['sample'], context: Context.TICK, runtimes, share: [share] }),
    openDeferring:
      deferring === undefined
        ? undefined
        : (runtimes, share) =>
            open(deferring, {
              programs: ['defer'],
              context: Context.DEFERRED,
              runtimes,
              maxEntries,
              share: [share],
            }),
  };
}

/** The object that can put stacks off until their pages are there; undefined: the kernel can't. */
function deferringObject({ taskWork, taskWorkImpl }: KernelFeatures): string | undefined {
  if (taskWork) return 'deferred.bpf.o';
  return taskWorkImpl ? 'deferred-6.18.bpf.o' : undefined;
}

/** Programs beside the sampler. */
const basePrograms = (settings: BpfSettings): string[] => [
  'tick',
  'report_mapped',
  'on_exec',
  'on_exit',
  ...(settings.targets !== Targets.NONE ? ['on_fork', 'on_task_free'] : []),
];

/** The BPF programs of one agent: the first object has all maps and the small programs, samplers come and go. */
export class BpfPrograms {
  readonly base: NativeBpfObject;
  readonly samplers: Samplers;
  readonly offCpu: OffCpu | undefined;
  readonly events: EventSources | undefined;

  /** Loads all; throws {@link CannotProfile}. */
  constructor(native: Native, settings: BpfSettings, warn: (message: string) => void) {
    try {
      const open = makeOpener(native, settings);
      this.base = openBase(open, settings);
      this.base.loadSync();
      this.samplers = new Samplers(native, this.base, samplerObjects(native, open), (what, error) =>
        warn(`${what}: ${explainLoadFailure(error).message}`),
      );
      const { base } = this;
      const { onThreads, readPages } = settings;
      this.offCpu =
        settings.offCpu && new OffCpu(settings.offCpu, { native, open, base, onThreads, readPages, warn });
      this.events = settings.events && new EventSources(native, open, this.base, settings.events);
    } catch (error) {
      throw explainLoadFailure(error as SystemFailure);
    }
  }

  async close(): Promise<void> {
    await this.samplers.close();
    await this.offCpu?.close();
    this.events?.close();
    this.base.close();
  }
}
