/** Boots a kernel in qemu's emulator (no KVM needed) and reads what guest-init prints on the serial console. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';

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
const MEMORY_MIB = 1024;
const DEVICES = ['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-serial', 'stdio'];

const CONSOLE = 'console';

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
  /** For confidentiality: BPF may not call what reads kernel memory. */
  isLockedDown?: boolean;
  memoryMiB?: number;
}

/** With the folder of what it prints. */
const running = new Map<ChildProcess, string>();
// An emulator would go on without this process.
process.on('exit', () => {
  for (const [machine, folder] of running) {
    machine.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
});

/** Lets signals end this process as it ends by itself, since by default no 'exit' is emitted then. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

/** Ends by itself after `limitMs` at the latest. */
export async function boot(options: BootOptions): Promise<Console> {
  const { architecture, kernel, initramfs, programsOnly, cpus } = options;
  const { command, machine, kernelOptions } = EMULATORS[architecture];
  const start = performance.now();
  const append = [
    kernelOptions,
    ...(programsOnly ? ['check=programs'] : []),
    ...(options.isLockedDown ? ['lockdown=confidentiality'] : []),
  ].join(' ');
  const image = ['-kernel', kernel, '-initrd', initramfs, '-append', append];
  const clock = cpus === 1 ? ONE_CPU : severalCpus(cpus);
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-console-'));
  const memory = ['-m', String(options.memoryMiB ?? MEMORY_MIB)];
  const ended = await run(
    command,
    [...clock, ...machine, ...memory, ...image, ...DEVICES],
    folder,
    options.limitMs,
  );
  const sections = parseConsole(readFileSync(join(folder, CONSOLE), 'utf8'));
  rmSync(folder, { recursive: true });
  return {
    sections,
    failure: sections.has('done') ? '' : ended,
    seconds: (performance.now() - start) / 1000,
  };
}

/**
 * How it ended. It prints to a file: while a pipe is full, the guest's time flies, and it is off before its console has
 * been sent.
 */
async function run(command: string, args: string[], folder: string, limitMs: number): Promise<string> {
  const file = openSync(join(folder, CONSOLE), 'a');
  const machine = spawn(command, args, { stdio: ['ignore', file, file] });
  closeSync(file);
  running.set(machine, folder);
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    machine.kill('SIGKILL');
  }, limitMs);
  const ended = await new Promise<string>((resolve) => {
    machine.on('error', (error) => resolve(`cannot start ${command}: ${error.message}`));
    machine.on('close', (code, signal) => resolve(`it ended early: ${signal ?? `exit code ${code}`}`));
  });
  running.delete(machine);
  clearTimeout(limit);
  return late ? `not done after ${limitMs / 1000} s` : ended;
}

function parseConsole(text: string): Map<string, string[]> {
  let section: string[] = [];
  const sections = new Map([['', section]]);
  for (const line of text.split('\n')) {
    const marker = /^=== (.*?)\s*$/.exec(line);
    if (!marker) section.push(line.trimEnd());
    else {
      section = [];
      sections.set(marker[1]!, section);
    }
  }
  return sections;
}
