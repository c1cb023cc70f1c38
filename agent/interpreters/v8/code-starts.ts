const PAGE = 4096;
/** Of a process. */
const MAX_PAGES = 4096;
const MAX_A_PAGE = 8;
const NONE: readonly number[] = [];

/**
 * Where code begins that program counters of a page were in: going back to it again takes reading all that lies between. It is
 * read anew before it is believed.
 */
export class CodeStarts {
  readonly #byPage = new Map<number, number[]>();

  at(pc: number): readonly number[] {
    return this.#byPage.get(Math.floor(pc / PAGE)) ?? NONE;
  }

  note(pc: number, start: number): void {
    const page = Math.floor(pc / PAGE);
    const starts = this.#byPage.get(page);
    if (starts?.includes(start)) return;
    if (this.#byPage.size >= MAX_PAGES) this.#byPage.clear();
    this.#byPage.set(page, [start, ...(starts ?? []).slice(0, MAX_A_PAGE - 1)]);
  }
}
