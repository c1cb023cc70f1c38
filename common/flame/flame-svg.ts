/**
 * A flame graph as one SVG file without a script, so that it works where a content security policy, a mail program
 * or a wiki forbids them. Its address says what is shown: `#z12` zooms into box 12, `#f3` marks the boxes of
 * function 3; style rules for `:target` do the rest. Where those are not understood (Inkscape, an `<img>`) the
 * attributes alone draw the whole picture.
 */

import { type FlameModel, kindOf, nameOf } from './flame-model.ts';
import { elideMiddle, formatShare, plural } from './format.ts';
import type { FrameKind } from './frame-kind.ts';
import { kindLabel } from './kinds.ts';
import { formatterOf, levelNote } from './shown-type.ts';
import { fillClass, svgStyle, type Zoom } from './svg-style.ts';

const WIDTH = 1200;
const HEADER = 66;
const ROW = 17;
/** Width of a wide one. */
const CHARACTER = 8;
const MAX_LABEL = 160;
const MAX_TOOLTIP = 600;
/** Functions that can be found by the list below the picture, the largest. */
const MAX_FUNCTIONS = 500;

export function flameSvg(model: FlameModel, title: string): string {
  const functions = listFunctions(model);
  const graphEnd = HEADER + (model.rowStart.length - 1) * ROW;
  const height = graphEnd + 40 + functions.length * ROW + 16;
  const fills = new Map<string, FrameKind>();
  for (let node = 0; node < model.count; node++)
    fills.set(fillClass(kindOf(model, node), nameOf(model, node)), kindOf(model, node));
  const zooms = listZooms(model);
  const findIds = new Map(functions.map(({ frame }, i) => [frame, `f${i}`]));
  return [
    `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" id="everyframe" width="${WIDTH}" height="${height}" font-family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="12">\n<title>${escapeXml(title)}</title>\n`,
    `<style>${svgStyle(fills, zooms, [...findIds.values()])}</style>\n`,
    `<rect width="100%" height="100%" fill="#fff" style="fill:var(--paper)"/>\n`,
    ...zooms.map(({ id }) => `<g id="${id}" display="none"/>\n`),
    ...functions.map((one, i) => foundLine(model, one, `f${i}`)),
    header(model, title),
    '<g id="boxes">\n',
    ...Array.from({ length: model.count }, (_, node) => box(model, node, findIds.get(model.frame[node]!))),
    '</g>\n',
    functionList(model, functions, graphEnd),
    '</svg>\n',
  ].join('');
}

/** The root's zoom is the whole picture, which needs no rule. */
function listZooms(model: FlameModel): Zoom[] {
  const whole = model.total[0]! || 1;
  const zooms: Zoom[] = [];
  for (let node = 1; node < model.count; node++) {
    const scale = round(whole / model.total[node]!);
    zooms.push({ id: `z${node}`, from: round(model.x[node]! / whole), scale });
  }
  return zooms;
}

function header(model: FlameModel, title: string): string {
  const { folded, samples, type } = model;
  const { column } = formatterOf(type);
  const cut =
    folded.samples === 0
      ? ''
      : `; ${plural(folded.nodes, 'box', 'boxes')} are not in this picture: ${formatShare(folded.samples / samples)} of the ${column} end there`;
  const hint = 'Click a box to zoom in, or a function below the picture to mark its boxes.';
  return [
    `<text x="8" y="20" font-size="15" font-weight="600">${escapeXml(elideMiddle(title, MAX_LABEL))}</text>\n`,
    `<text x="8" y="39" class="soft" fill="#59636f">${escapeXml(formatterOf(type).of(samples) + levelNote(type) + cut)}</text>\n`,
    `<a href="#"><text x="8" y="57" class="link" fill="#2f62c9">Whole picture</text></a>\n`,
    `<a href="#functions"><text x="104" y="57" class="link" fill="#2f62c9">Functions</text></a>\n`,
    `<text id="hint" x="178" y="57" class="soft" fill="#59636f">${hint}</text>\n`,
  ].join('');
}

function box(model: FlameModel, node: number, findId: string | undefined): string {
  const whole = model.total[0]! || 1;
  const [left, right] = [model.x[node]! / whole, (model.x[node]! + model.total[node]!) / whole];
  const name = labelOf(model, node);
  const classes = [fillClass(kindOf(model, node), name), findId].filter(Boolean).join(' ');
  const y = HEADER + model.depth[node]! * ROW;
  const place = `x="${percent(left)}" y="${y}" width="${percent(right - left)}" height="${ROW}"`;
  // without style rules nothing cuts a label: then only those are seen that fit
  const display = name.length * CHARACTER < (right - left) * WIDTH ? '' : ' display="none"';
  return [
    `<a href="#${node === 0 ? '' : `z${node}`}">`,
    `<g class="box" style="--left:${round(left)};--right:${round(right)}">`,
    `<title>${escapeXml(tooltip(model, node))}</title>`,
    `<rect class="${classes}" ${place} stroke="#fff"/>`,
    `<text x="${percent(left)}" dx="4" y="${y + 12.5}"${display}>${escapeXml(elideMiddle(name, MAX_LABEL))}</text></g></a>\n`,
  ].join('');
}

const labelOf = (model: FlameModel, node: number): string =>
  kindOf(model, node) === 'other' ? '(other)' : nameOf(model, node);

function tooltip(model: FlameModel, node: number): string {
  const frame = model.frame[node]!;
  const kind = kindOf(model, node);
  const { cell, column } = formatterOf(model.type);
  const amount = (samples: number): string => `${cell(samples)} (${formatShare(samples / model.samples)})`;
  return [
    elideMiddle(labelOf(model, node), MAX_TOOLTIP),
    kind === 'other' ? 'small boxes that are not in this picture' : kindLabel(kind),
    elideMiddle(model.mappings[frame]!, MAX_TOOLTIP),
    elideMiddle(model.files[frame]!, MAX_TOOLTIP),
    `${column}: ${amount(model.total[node]!)}, its own ${amount(model.self[node]!)}`,
  ]
    .filter((line) => line !== '')
    .join('\n');
}

interface FoundFunction {
  frame: number;
  boxes: number;
  self: number;
  /** Samples with it on the stack: where it calls itself they count once. */
  total: number;
}

function listFunctions(model: FlameModel): FoundFunction[] {
  const found = new Map<number, FoundFunction>();
  for (let node = 0; node < model.count; node++) {
    if (['root', 'other', 'process'].includes(kindOf(model, node))) continue;
    const frame = model.frame[node]!;
    const entry = found.get(frame) ?? { frame, boxes: 0, self: 0, total: 0 };
    found.set(frame, entry);
    entry.boxes++;
    entry.self += model.self[node]!;
    if (!isInside(model, node, frame)) entry.total += model.total[node]!;
  }
  return [...found.values()].sort((a, b) => b.total - a.total || b.self - a.self).slice(0, MAX_FUNCTIONS);
}

function isInside(model: FlameModel, node: number, frame: number): boolean {
  for (let at = node; at !== 0; ) {
    at = model.parent[at]!;
    if (model.frame[at] === frame) return true;
  }
  return false;
}

/** In sight, in the place of the hint, while it is the one that is looked for. */
function foundLine(model: FlameModel, { frame, boxes, total }: FoundFunction, id: string): string {
  const text = `${elideMiddle(model.names[frame]!, 100)}: ${formatShare(total / model.samples)} of the ${formatterOf(model.type).column}, in ${plural(boxes, 'box', 'boxes')}`;
  // as high as the header, which a browser scrolls to with it
  return `<g id="${id}" class="found" display="none"><rect width="1" height="${HEADER}" fill="none"/><text x="178" y="57">${escapeXml(text)}</text></g>\n`;
}

function functionList(model: FlameModel, functions: readonly FoundFunction[], top: number): string {
  const all = new Set(model.frame).size;
  const cut =
    functions.length === MAX_FUNCTIONS && all > MAX_FUNCTIONS ? `, the ${MAX_FUNCTIONS} largest` : '';
  const rows = functions.map(({ frame, self, total }, i) => {
    const y = top + 40 + (i + 1) * ROW;
    const share = (x: number, samples: number): string =>
      `<text x="${x}" y="${y}" text-anchor="end" class="soft" fill="#59636f">${escapeXml(formatShare(samples / model.samples))}</text>`;
    const mapping = model.mappings[frame]!;
    const place = mapping === '' ? '' : ` <tspan class="soft" fill="#59636f">${escapeXml(mapping)}</tspan>`;
    const name = escapeXml(elideMiddle(model.names[frame]!, MAX_LABEL));
    return `${share(60, total)}${share(124, self)}<a href="#f${i}"><text x="136" y="${y}"><tspan class="link" fill="#2f62c9">${name}</tspan>${place}</text></a>\n`;
  });
  const heads = ['total', 'self'].map(
    (text, i) =>
      `<text x="${60 + i * 64}" y="${top + 40}" text-anchor="end" class="soft" fill="#59636f">${text}</text>`,
  );
  return `<text id="functions" x="136" y="${top + 40}" font-weight="600">Functions${cut}</text>${heads.join('')}\n${rows.join('')}`;
}

/** Enough digits for a box of a millionth of the picture. */
const round = (value: number): number => Number(value.toPrecision(9));
const percent = (share: number): string => `${round(share * 100)}%`;

/** Names come from strangers: no markup of theirs, nor a character that XML has no place for. */
function escapeXml(text: string): string {
  return text
    .replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/(?!\n)[\p{Cc}\p{Cs}]|[\ufffe\uffff]/gu, '\ufffd');
}
