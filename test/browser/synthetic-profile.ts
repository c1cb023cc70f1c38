import {
  emptyProcess,
  emptyProfile,
  type FrameType,
  type Profile,
} from '../../common/profile/model/profile.ts';
import { cpuType } from '../../common/profile/model/profile-type.ts';

const KINDS: Record<string, FrameType> = {
  k: 'kernel',
  n: 'native',
  g: 'go',
  p: 'cpython',
  j: 'v8js',
  v: 'jvm',
  m: 'abort-marker',
};

export interface SyntheticOptions {
  /** Milliseconds since the Unix epoch of the newest event. */
  endMs: number;
  /** The events of each stack are spread evenly over this time. */
  spanMs: number;
  periodNanos?: number;
  host?: string;
}

/**
 * A profile from text, one stack a line, root first: `PROCESS:PID;main@n;write@n;vfs_write@k COUNT`. The letter
 * after @ is the kind of frame: k kernel, n native, g Go, p Python, j JavaScript, v JVM, m a marker for a stack that was cut; none: unknown.
 * `parse@p:/srv/app.py:12` is at a line of a source file.
 */
export function profileFromText(text: string, options: SyntheticOptions): Profile {
  const { endMs, spanMs, periodNanos = 50_000_000, host = 'test-host' } = options;
  const builder = new Builder();
  const { profile } = builder;
  profile.type = cpuType(BigInt(periodNanos));
  profile.host = { 'host.name': host };
  profile.timeUnixNano = BigInt(endMs - spanMs) * 1_000_000n;
  profile.durationNano = BigInt(spanMs) * 1_000_000n;
  for (const [index, line] of text.trim().split('\n').entries()) {
    const match = /^(.+) (\d+)$/.exec(line.trim());
    if (match === null) throw new Error(`no count at the end of "${line}"`);
    const [process, ...frames] = match[1]!.split(';');
    const [, name, pid] = /^(.+?)(?::(\d+))?$/.exec(process!)!;
    const count = Number(match[2]);
    profile.samples.push({
      stack: builder.stack(frames),
      process: builder.process(name!, Number(pid ?? 1)),
      tid: Number(pid ?? 1),
      threadName: name!,
      cpu: index % 2,
      value: count,
      timestamps: Array.from({ length: count }, (_, i) => {
        const ms = endMs - ((count - 1 - i) * spanMs) / count - 1;
        return BigInt(Math.floor(ms)) * 1_000_000n;
      }),
    });
  }
  return profile;
}

class Builder {
  readonly profile = emptyProfile();
  readonly #locations = new Map<string, number>();
  readonly #functions = new Map<string, number>();
  readonly #processes = new Map<string, number>();
  readonly #stacks = new Map<string, number>();

  process(name: string, pid: number): number {
    const key = `${name}:${pid}`;
    const known = this.#processes.get(key);
    if (known !== undefined) return known;
    const executablePath = `/usr/bin/${name}`;
    const index =
      this.profile.processes.push({
        ...emptyProcess(),
        pid,
        executableName: name,
        executablePath,
        commandName: name,
      }) - 1;
    this.#processes.set(key, index);
    return index;
  }

  stack(frames: readonly string[]): number {
    const key = frames.join(';');
    const known = this.#stacks.get(key);
    if (known !== undefined) return known;
    const locations = frames.map((frame) => this.#location(frame)).reverse();
    const index = this.profile.stacks.push(Uint32Array.from(locations)) - 1;
    this.#stacks.set(key, index);
    return index;
  }

  #location(frame: string): number {
    const known = this.#locations.get(frame);
    if (known !== undefined) return known;
    const { profile } = this;
    const [, name, letter, file = '', line = '0'] = /^(.*?)(?:@(\w)(?::(.+):(\d+))?)?$/.exec(frame)!;
    const frameType = letter === undefined ? '' : KINDS[letter]!;
    const func = this.#function(name!, file);
    const address = BigInt(0x1000 + 16 * profile.locations.length);
    const lines = [{ func, line: Number(line), column: 0 }];
    const index =
      profile.locations.push({ mapping: this.#mapping(frameType), address, frameType, lines }) - 1;
    this.#locations.set(frame, index);
    return index;
  }

  #function(name: string, filename: string): number {
    const key = `${name}\0${filename}`;
    const known = this.#functions.get(key);
    if (known !== undefined) return known;
    const index = this.profile.functions.push({ name, systemName: '', filename, startLine: 0 }) - 1;
    this.#functions.set(key, index);
    return index;
  }

  #mapping(type: FrameType): number {
    if (type !== 'kernel' && type !== 'native') return 0;
    const filename = type === 'kernel' ? 'vmlinux' : '/usr/lib/x86_64-linux-gnu/libc.so.6';
    const { mappings } = this.profile;
    const known = mappings.findIndex((mapping) => mapping.filename === filename);
    if (known >= 0) return known;
    const fileId = (type === 'kernel' ? '1' : '2').padStart(32, '0');
    return mappings.push({ ...mappings[0]!, filename, fileId }) - 1;
  }
}
