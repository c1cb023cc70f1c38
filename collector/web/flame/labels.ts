import { elideMiddle } from '../../../common/flame/format.ts';

/** Fewer characters say nothing. */
const MIN_LENGTH = 6;
const MAX_CACHED = 20_000;

/** Text that fits a box. Each name, and each shortened form of it, is measured once. */
export class Labels {
  readonly #context: CanvasRenderingContext2D;
  readonly #widths = new Map<string, number>();

  /** The context's font must stay as it is. */
  constructor(context: CanvasRenderingContext2D) {
    this.#context = context;
  }

  /** The name, shortened in its middle to the width, or '' where nothing readable fits. */
  fit(name: string, width: number): string {
    const full = this.#measure(name);
    if (full <= width) return name;
    let length = Math.floor((name.length * width) / full);
    for (; length >= MIN_LENGTH; length--) {
      const text = elideMiddle(name, length);
      if (this.#measure(text) <= width) return text;
    }
    return '';
  }

  #measure(text: string): number {
    let width = this.#widths.get(text);
    if (width === undefined) {
      if (this.#widths.size > MAX_CACHED) this.#widths.clear();
      width = this.#context.measureText(text).width;
      this.#widths.set(text, width);
    }
    return width;
  }
}
