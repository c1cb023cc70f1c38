/** A program that says it is a runtime and lies, once for each way of lying that it knows, in one recording. */
import { type ChildProcess, spawn } from 'node:child_process';
import { toPid } from '../../common/base/brand.ts';
import { Recording, type Stack, total } from '../support/recording.ts';

export class LyingPrograms {
  readonly recording: Recording;
  readonly #running: ReadonlyMap<string, ChildProcess>;

  private constructor(running: ReadonlyMap<string, ChildProcess>, recording: Recording) {
    this.#running = running;
    this.recording = recording;
  }

  static async start(path: string, modes: readonly string[]): Promise<LyingPrograms> {
    const running = new Map(
      modes.map((mode) => [mode, spawn('nice', ['-n', '19', path, mode], { stdio: 'ignore' })]),
    );
    const targets = [...running.values()].map(({ pid }) => toPid(pid!));
    try {
      return new LyingPrograms(running, await Recording.start({ targets }));
    } catch (error) {
      for (const child of running.values()) child.kill('SIGKILL');
      throw error;
    }
  }

  stacksOf(mode: string): Stack[] {
    return this.recording.stacks(this.#running.get(mode)!.pid);
  }

  /** The user frames of its most frequent stack: a sample may also have hit the kernel, or lack a table. */
  framesOf(mode: string): string[] {
    const counts = new Map<string, number>();
    for (const { frames, kernelFrames, count } of this.stacksOf(mode)) {
      const text = frames.slice(kernelFrames).join('\n');
      counts.set(text, (counts.get(text) ?? 0) + count);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]![0].split('\n');
  }

  /** Each of them was sampled often enough to say what its stacks look like. */
  haveEnough(): boolean {
    return [...this.#running.keys()].every((mode) => total(this.stacksOf(mode)) >= 30);
  }

  async stop(): Promise<void> {
    for (const child of this.#running.values()) child.kill('SIGKILL');
    await this.recording.stop();
  }
}
