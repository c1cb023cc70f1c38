/** What tests of programs that say they are a runtime and lie have in common. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compile } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

/** User frames, and the kernel's. */
export const MAX_FRAMES = 1023 + 128;

export interface Lies {
  /** Of fixtures/fake-NAME.c. */
  name: string;
  /** Its ways of lying; `plain` is none. */
  modes: readonly string[];
  /** Native function whose frames run the runtime's. */
  loop: string;
  /** Function of the runtime that `plain` has. */
  func: string;
  /** It takes that many names that can't be read, too; 0 unless given. */
  minFailedNames?: number;
}

/** Runs them in all modes, beside a program that has nothing to do with them, for the tests of the block. */
export class Hostile {
  readonly #lies: Lies;
  #programs!: LyingPrograms;
  #witness: Witness | undefined;

  constructor(lies: Lies) {
    this.#lies = lies;
    beforeAll(() => this.#record(), 200_000);
    afterAll(async () => {
      this.#witness?.stop();
      await this.#programs?.stop();
    });
  }

  async #record(): Promise<void> {
    const { name, modes, loop, func, minFailedNames = 0 } = this.#lies;
    const path = compile(`fake-${name}`, 'gcc', ['-O2', '-rdynamic', '-pthread'], `fake-${name}.c`);
    const programs = await LyingPrograms.start(path, modes);
    this.#programs = programs;
    const { recording } = programs;
    const witness = await startWitness(recording);
    this.#witness = witness;
    // `plain` shows that they are taken for the runtime at all
    const isShown = (mode: string): boolean =>
      programs
        .stacksOf(mode)
        .some(({ frames }) => frames.includes(loop) && (mode !== 'plain' || frames.includes(func)));
    await recording.until(() => modes.every(isShown));
    recording.clear();
    witness.begin();
    await recording.until(
      () => witness.hasEnough() && programs.haveEnough() && this.failedNames >= minFailedNames,
      120_000,
    );
    await witness.end();
  }

  /** User frames of the most frequent stack. */
  framesOf(mode: string): string[] {
    return this.#programs.framesOf(mode);
  }

  counter(name: string): number {
    return this.#programs.recording.controller.counters()[name]!;
  }

  get failedNames(): number {
    return ['replaced', 'malformed', 'unreadable'].reduce(
      (sum, why) => sum + this.counter(`runtimeFrames.${why}`),
      0,
    );
  }

  /** Stacks of a mode, and the names in them. */
  expectBounded(mode: string, maxNameChars: number): void {
    const stacks = this.#programs.stacksOf(mode);
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(maxNameChars);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThanOrEqual(MAX_FRAMES);
  }

  expectCutByDepth(mode: string): void {
    const frames = this.framesOf(mode);
    expect(frames.filter((name) => name === this.#lies.func)).toHaveLength(1023);
    expect(frames.at(-1)).toBe('[cut: deeper than the limit]');
  }

  itCostsOthersNothing(): void {
    it('costs other processes nothing', () => this.#witness!.expectComplete());
  }
}
