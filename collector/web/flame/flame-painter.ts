import {
  type FlameModel,
  kindOf,
  lastStartingBefore,
  libraryOf,
  nameOf,
} from '../../../common/flame/flame-model.ts';
import { plural } from '../../../common/flame/format.ts';
import { isStateName } from '../../../common/profile/model/library.ts';
import type { SearchResult } from '../state/search.ts';
import type { Theme } from '../state/theme.ts';
import type { Colour } from '../state/url-state.ts';
import { growthOf } from './diff-model.ts';
import { Labels } from './labels.ts';

export const ROW_HEIGHT = 21;
const GAP = 1;
const PADDING = 6;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
/** Narrower boxes are drawn as one with their neighbours. */
const MIN_BOX_WIDTH = 1;
const MIN_DUST_WIDTH = 0.6;
const DUST_ALPHA = 0.7;
const MIN_LABEL_WIDTH = 26;

/** What a picture shows: lengths on x in samples, the rest in CSS pixels. */
export interface Scene {
  model: FlameModel;
  theme: Theme;
  /** The visible part of the x axis. */
  from: number;
  to: number;
  /** The zoomed box; the rows above it are its callers. */
  root: number;
  scrollTop: number;
  width: number;
  height: number;
  /** Callees grow up, from the bottom of the picture. */
  isFlipped: boolean;
  /** Rows that the picture has, with those of the callers of a zoomed box. */
  rows: number;
  found: SearchResult | undefined;
  colour: Colour;
  hovered: number | undefined;
  selected: number | undefined;
}

/** A run of boxes that are drawn as one. */
interface Dust {
  left: number;
  right: number;
  /** The first of them. */
  node: number;
  /** How many. */
  count: number;
  /** Whether the search found any of them. */
  isMatch: boolean;
}

/** Draws the visible rows on a canvas of the viewport's size: its cost depends on neither depth nor width. */
export class FlamePainter {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #labels: Labels;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    const context = canvas.getContext('2d', { alpha: false });
    if (context === null) throw new Error('this browser has no 2D canvas');
    this.#context = context;
    this.#context.font = FONT;
    this.#labels = new Labels(context);
  }

  /** @returns how many boxes were drawn one by one */
  paint(scene: Scene): number {
    const ratio = window.devicePixelRatio || 1;
    const context = this.#context;
    this.#resize(Math.round(scene.width * ratio), Math.round(scene.height * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = scene.theme.background;
    context.fillRect(0, 0, scene.width, scene.height);
    const rows = scene.model.rowStart.length - 1;
    const [a, b] = [rowAt(scene, 0), rowAt(scene, scene.height)];
    const first = Math.max(0, Math.min(a, b));
    const last = Math.min(rows - 1, Math.max(a, b));
    let boxes = 0;
    for (let row = first; row <= last; row++) boxes += this.#paintRow(scene, row);
    if (scene.hovered !== undefined) this.#paintHover(scene, scene.hovered);
    if (scene.selected !== undefined) this.#paintRing(scene, scene.selected);
    return boxes;
  }

  #resize(width: number, height: number): void {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
  }

  #paintRow(scene: Scene, row: number): number {
    const { model, from, to, width } = scene;
    const scale = width / (to - from);
    const end = model.rowStart[row + 1]!;
    const top = topOf(scene, row);
    let node = lastStartingBefore(model, row, from) ?? model.rowStart[row]!;
    let boxes = 0;
    let dust: Dust | undefined;
    for (; node < end && model.x[node]! < to; node++) {
      const left = (Math.max(model.x[node]!, from) - from) * scale;
      const right = (Math.min(model.x[node]! + model.total[node]!, to) - from) * scale;
      if (right <= 0) continue;
      if (right - left >= MIN_BOX_WIDTH) {
        this.#paintBox(scene, node, left, right, top);
        boxes++;
        continue;
      }
      if (dust !== undefined && left - dust.right > MIN_BOX_WIDTH) {
        this.#paintDust(scene, dust, top);
        dust = undefined;
      }
      dust ??= { left, right, node, count: 0, isMatch: false };
      dust.right = right;
      dust.count++;
      dust.isMatch ||= scene.found?.frames[model.frame[node]!] === 1;
    }
    if (dust !== undefined) this.#paintDust(scene, dust, top);
    return boxes;
  }

  /** In the colour of its first box, unless one could take it for a box; a match among the boxes must be seen. */
  #paintDust(scene: Scene, { left, right, node, count, isMatch }: Dust, top: number): void {
    const { theme, found } = scene;
    const context = this.#context;
    if (right - left >= MIN_LABEL_WIDTH && found === undefined) {
      this.#paintWideDust(scene.theme, left, right, count, top);
      return;
    }
    if (isMatch) context.fillStyle = theme.match;
    else if (found !== undefined) context.fillStyle = theme.dimmed;
    else context.fillStyle = fillOf(scene, node);
    context.globalAlpha = isMatch ? 1 : DUST_ALPHA;
    context.fillRect(left, top, Math.max(right - left, MIN_DUST_WIDTH), ROW_HEIGHT - GAP);
    context.globalAlpha = 1;
  }

  #paintWideDust(theme: Theme, left: number, right: number, count: number, top: number): void {
    const context = this.#context;
    const [from, width] = snap(left, right);
    context.fillStyle = theme.fill('other', '');
    context.fillRect(from, top, width, ROW_HEIGHT - GAP);
    context.fillStyle = theme.faintText;
    const label = this.#labels.fit(
      `${plural(count, 'box', 'boxes')} not shown at this zoom`,
      width - 2 * PADDING,
    );
    if (label !== '') context.fillText(label, from + PADDING, top + (ROW_HEIGHT - GAP) / 2 + 0.5);
  }

  #paintBox(scene: Scene, node: number, left: number, right: number, top: number): void {
    const { model, theme, found, root } = scene;
    const context = this.#context;
    const isMatch = found !== undefined && found.frames[model.frame[node]!] === 1;
    const isDimmed = found !== undefined && !isMatch;
    const name = nameOf(model, node);
    const [from, width] = snap(left, right);
    const isCaller = model.depth[node]! < model.depth[root]!;
    if (isMatch) context.fillStyle = theme.match;
    else if (isDimmed) context.fillStyle = theme.dimmed;
    else context.fillStyle = fillOf(scene, node);
    if (isCaller && !isMatch) context.globalAlpha = 0.55;
    context.fillRect(from, top, width, ROW_HEIGHT - GAP);
    if (width >= MIN_LABEL_WIDTH) {
      if (isMatch) context.fillStyle = theme.matchText;
      else if (isDimmed) context.fillStyle = theme.dimmedText;
      else context.fillStyle = kindOf(model, node) === 'other' ? theme.faintText : theme.text;
      context.globalAlpha = isCaller && !isMatch ? 0.75 : 1;
      const label = this.#labels.fit(name, width - 2 * PADDING);
      if (label !== '') context.fillText(label, from + PADDING, top + (ROW_HEIGHT - GAP) / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }

  #paintHover(scene: Scene, node: number): void {
    const box = boxOf(scene, node);
    if (box === undefined) return;
    this.#context.fillStyle = scene.theme.hover;
    this.#context.fillRect(box.left, box.top, box.width, ROW_HEIGHT - GAP);
  }

  #paintRing(scene: Scene, node: number): void {
    const box = boxOf(scene, node);
    if (box === undefined) return;
    const context = this.#context;
    context.strokeStyle = scene.theme.ring;
    context.lineWidth = 2;
    context.beginPath();
    context.roundRect(box.left + 1, box.top + 1, Math.max(box.width - 2, 1), ROW_HEIGHT - GAP - 2, 2);
    context.stroke();
  }
}

function fillOf({ theme, model, colour }: Scene, node: number): string {
  if (colour === 'difference' && model.comparison !== undefined) return theme.growth(growthOf(model, node));
  const library = libraryOf(model, node);
  return library === '' || (colour !== 'library' && !isStateName(library))
    ? theme.fill(kindOf(model, node), nameOf(model, node))
    : theme.libraryFill(library, nameOf(model, node));
}

type Rows = Pick<Scene, 'isFlipped' | 'rows' | 'height' | 'scrollTop'>;

/** Where the lowest row ends: at the bottom of the viewport, unless there is more than fits. */
const floorOf = ({ rows, height }: Rows): number => Math.max(rows * ROW_HEIGHT, height);

/** Top of a row in the viewport. */
export function topOf(scene: Rows, row: number): number {
  const top = scene.isFlipped ? floorOf(scene) - (row + 1) * ROW_HEIGHT : row * ROW_HEIGHT;
  return top - scene.scrollTop;
}

/** The row at a height in the viewport. */
export function rowAt(scene: Rows, y: number): number {
  const below = y + scene.scrollTop;
  return scene.isFlipped
    ? Math.ceil((floorOf(scene) - below) / ROW_HEIGHT) - 1
    : Math.floor(below / ROW_HEIGHT);
}

/** Where a node's box is in the viewport, clipped to its sides; undefined if it lies outside of them. */
export function boxOf(scene: Scene, node: number): { left: number; top: number; width: number } | undefined {
  const { model, from, to, width } = scene;
  const scale = width / (to - from);
  const left = (Math.max(model.x[node]!, from) - from) * scale;
  const right = (Math.min(model.x[node]! + model.total[node]!, to) - from) * scale;
  if (right <= left) return undefined;
  const [edge, boxWidth] = snap(left, right);
  return { left: edge, top: topOf(scene, model.depth[node]!), width: Math.max(boxWidth, 1) };
}

/**
 * A box's left edge and width, in CSS pixels, on edges of device pixels and with a gap to its neighbour. Such plain
 * rectangles are copied; smoothed edges and rounded corners made a paint of 20,000 boxes take several times as long.
 */
function snap(left: number, right: number): [from: number, width: number] {
  const ratio = window.devicePixelRatio || 1;
  const from = Math.round(left * ratio) / ratio;
  const width = Math.max(Math.round(right * ratio) / ratio - from, 1 / ratio);
  return [from, width > 3 ? width - GAP : width];
}
