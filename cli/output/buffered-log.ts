/** Lines of a log while a full-screen view has the terminal: kept, and written when it has left. */

const MAX_LINES = 1000;

export class BufferedLog {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #dropped = 0;
  #isHeld = false;
  /** The last line that came, until {@link markRead}; '' if none. */
  unread = '';

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  hold(): void {
    this.#isHeld = true;
  }

  /** A line with its end. */
  add(line: string): void {
    if (!this.#isHeld) {
      this.#write(line);
      return;
    }
    this.unread = line.trimEnd().replaceAll('\n', ' ');
    this.#lines.push(line);
    if (this.#lines.length <= MAX_LINES) return;
    this.#lines.shift();
    this.#dropped++;
  }

  markRead(): void {
    this.unread = '';
  }

  /** Writes what was held; what comes later is written at once. */
  release(): void {
    this.#isHeld = false;
    this.unread = '';
    if (this.#dropped > 0) this.#write(`${this.#dropped} older lines of the log were dropped\n`);
    for (const line of this.#lines.splice(0)) this.#write(line);
    this.#dropped = 0;
  }
}
