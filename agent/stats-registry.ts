/** Counters by name, read when they are asked for: each part's under a prefix of its own. */
export type Counters = Readonly<Record<string, number>>;

export class StatsRegistry {
  readonly #sources: { prefix: string; read: () => Counters | undefined }[] = [];
  /** Last values, once frozen. */
  #last: Record<string, number> | undefined;

  /** `prefix.name` for each counter. `read` gives undefined while there is nothing to count. */
  add(prefix: string, read: () => Counters | undefined): void {
    this.#sources.push({ prefix, read });
  }

  /** Counters of all parts, in the order in which they were added. */
  read(): Record<string, number> {
    return this.#last ?? this.#readAll();
  }

  /** Keeps the present values: the parts may be closed from now on. */
  freeze(): void {
    this.#last ??= this.#readAll();
  }

  #readAll(): Record<string, number> {
    return Object.fromEntries(
      this.#sources.flatMap(({ prefix, read }) =>
        Object.entries(read() ?? {}).map(([name, value]) => [`${prefix}.${name}`, value]),
      ),
    );
  }
}
