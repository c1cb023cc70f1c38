/** Boots a kernel in qemu's emulator (no KVM needed) and reads what guest-init prints on the serial console. */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';

export interface Console {
  /** Lines by the marker above them ("=== name"); what the kernel itself says first is under ''. */
  sections: Map<string, string[]>;
  /** Why it ended, '' if the guest switched itself off. */
  failure: string;
  seconds: number;
}

export type Architecture = 'amd64' | 'arm64';

interface Emulator {
  command: string;
  machine: string[];
  kernelOptions: string;
}

const KERNEL_OPTIONS = 'panic=-1 loglevel=4 nowatchdog rdinit=/init';
export const EMULATORS: Readonly<Record<Architecture, Emulator>> = {
  amd64: {
    command: 'qemu-system-x86_64',
    // without cmpxchg16b, which this emulator (7.2, one thread) now and then ends with garbage in the flags: the kernel
    // does without it
    machine: ['-cpu', 'max,-cx16'],
    kernelOptions: `console=ttyS0 no_timer_check ${KERNEL_OPTIONS}`,
  },
  arm64: {
    command: 'qemu-system-aarch64',
    // signatures of return addresses by a function that costs the emulator little; with lpa2 5.10 does not boot
    machine: ['-M', 'virt,gic-version=3', '-cpu', 'max,pauth-impdef=on,lpa2=off'],
    kernelOptions: `console=ttyAMA0 ${KERNEL_OPTIONS}`,
  },
};
/**
 * Time in the guest is what it has executed, 2 ns an instruction, and idle time is skipped: a busy host makes the
 * guest later but not slower, so that nothing in it depends on the host's speed. It takes a single CPU.
 */
const ONE_CPU = ['-accel', 'tcg,thread=single', '-icount', 'shift=1,sleep=off', '-smp', '1'];
/** A thread each, and the host's time: where the host is busy, less is done in it. */
const severalCpus = (cpus: number): string[] => ['-accel', 'tcg,thread=multi', '-smp', String(cpus)];
const DEVICES = [
  '-m',
  '1024',
  '-nodefaults',
  '-no-user-config',
  '-no-reboot',
  '-display',
  'none',
  '-serial',
  'stdio',
];

/** What is booted, and how long it may take. */
export interface Image {
  kernel: string;
  initramfs: string;
  limitMs: number;
}

export interface BootOptions extends Image {
  architecture: Architecture;
  /** Only load the BPF programs. */
  programsOnly: boolean;
  cpus: number;
}

const running = new Set<ChildProcess>();
// An emulator would go on without this process.
process.on('exit', () => {
  for (const machine of running) machine.kill('SIGKILL');
});

/** Lets signals end this process as it ends by itself, since by default no 'exit' is emitted then. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

/** Ends by itself after `limitMs` at the latest. */
export async function boot(bootOptions: BootOptions): Promise<Console> {
  const { kernel, initramfs, programsOnly, cpus, limitMs } = bootOptions;
  const { command, machine: cpu, kernelOptions } = EMULATORS[bootOptions.architecture];
  const start = performance.now();
  const sections = new Map<string, string[]>([['', []]]);
  let section = sections.get('')!;
  let failure = '';
  const options = programsOnly ? `${kernelOptions} check=programs` : kernelOptions;
  const image = ['-kernel', kernel, '-initrd', initramfs, '-append', options];
  const clock = cpus === 1 ? ONE_CPU : severalCpus(cpus);
  const machine = spawn(command, [...clock, ...cpu, ...image, ...DEVICES], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(machine);
  const limit = setTimeout(() => {
    failure = `not done after ${limitMs / 1000} s`;
    machine.kill('SIGKILL');
  }, limitMs);
  createInterface({ input: machine.stderr }).on('line', (line) => sections.get('')!.push(line));
  createInterface({ input: machine.stdout }).on('line', (line) => {
    const marker = /^=== (.*?)\s*$/.exec(line);
    if (!marker) return void section.push(line.trimEnd());
    section = [];
    sections.set(marker[1]!, section);
  });
  await new Promise<void>((resolve) => {
    machine.on('error', (error) => {
      failure = `cannot start ${command}: ${error.message}`;
      resolve();
    });
    machine.on('close', (code, signal) => {
      if (failure === '' && !sections.has('done'))
        failure = `it ended early: ${signal ?? `exit code ${code}`}`;
      resolve();
    });
  });
  running.delete(machine);
  clearTimeout(limit);
  return { sections, failure, seconds: (performance.now() - start) / 1000 };
}
