/** A graph of folders as a matrix in SVG: rows import, columns are imported. */
import type { FolderEdge, FolderGraph } from './folder-graph.ts';

const CELL = 11;
const LABEL = 190;
const HEADER = 46;
const FOOTER = 30;
const CHARACTER_SLOPE = 0.5;
/** Files named in the tooltip of a mark. */
const MAX_FILES = 12;

const STYLE = `
text{font:9px system-ui,sans-serif;fill:#1c2430}
.title{font-size:15px;font-weight:600}.soft{fill:#59636f}
.part{fill:#eef1f5}.line{stroke:#dfe4ea;stroke-width:.5}.diagonal{fill:#c9d1da}.knot{fill:none;stroke:#c62828;stroke-width:1.2}
.mark{fill:#2f62c9}.types{fill:#fff;stroke:#2f62c9;stroke-width:1.2}.back{fill:#c62828}.back.types{fill:#fff;stroke:#c62828}`;

export function drawMatrix(graph: FolderGraph, title: string): string {
  const order = graph.inOrder();
  const position = new Map(order.map((folder, i) => [folder, i]));
  const size = order.length * CELL;
  const [width, height] = [LABEL + size + LABEL * CHARACTER_SLOPE, HEADER + LABEL + size + FOOTER];
  const knots = graph.knots().filter((knot) => knot.length > 1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<style>${STYLE}</style><rect width="100%" height="100%" fill="#fff"/>`,
    `<text class="title" x="10" y="22">${escapeXml(title)}</text>`,
    `<text class="soft" x="10" y="38">${summary(graph, knots)}</text>`,
    `<g transform="translate(${LABEL} ${HEADER + LABEL})">`,
    ...parts(order),
    ...order.map((folder, i) => label(folder, i, size)),
    ...knots.map((knot) => frame(knot.map((folder) => position.get(folder)!))),
    ...graph.edges.map((edge) => mark(edge, position.get(edge.from)!, position.get(edge.to)!)),
    '</g>',
    `<text class="soft" x="10" y="${height - 10}">A row imports a column. Filled: values too; hollow: types only. Red, left of the diagonal: against the order, in a circle.</text>`,
    '</svg>\n',
  ].join('\n');
}

const summary = ({ folders, edges }: FolderGraph, knots: readonly string[][]): string => {
  const inCircles = new Set(knots.flat()).size;
  const circles = inCircles === 0 ? 'no circle' : `${inCircles} folders in ${knots.length} knots of circles`;
  return `${folders.length} folders, ${edges.length} times one imports another, ${circles}`;
};

/** Behind each part of the product. */
function parts(order: readonly string[]): string[] {
  const names = order.map((folder) => folder.split('/')[0]!);
  return [...new Set(names)].map((name) => {
    const [first, last] = [names.indexOf(name), names.lastIndexOf(name)];
    return `<rect class="part" x="${first * CELL}" y="${first * CELL}" width="${(last - first + 1) * CELL}" height="${(last - first + 1) * CELL}"/>`;
  });
}

function label(folder: string, i: number, size: number): string {
  const middle = (i + 0.5) * CELL;
  return [
    `<path class="line" d="M0 ${middle}H${size}M${middle} 0V${size}"/>`,
    `<rect class="diagonal" x="${i * CELL}" y="${i * CELL}" width="${CELL}" height="${CELL}"/>`,
    `<text x="-5" y="${middle + 3}" text-anchor="end">${escapeXml(folder)}</text>`,
    `<text transform="translate(${middle + 3} -5) rotate(-60)">${escapeXml(folder)}</text>`,
  ].join('');
}

function frame(places: readonly number[]): string {
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const side = (last - first + 1) * CELL;
  return `<rect class="knot" x="${first * CELL}" y="${first * CELL}" width="${side}" height="${side}"/>`;
}

function mark({ from, to, imports }: FolderEdge, row: number, column: number): string {
  const kinds = [row > column ? 'back' : 'mark', ...(imports.every(({ isType }) => isType) ? ['types'] : [])];
  const files = imports.slice(0, MAX_FILES).map((one) => `${one.from} → ${one.to}`);
  const tip = [`${from} → ${to}: ${imports.length}`, ...files].join('\n');
  return `<circle class="${kinds.join(' ')}" cx="${(column + 0.5) * CELL}" cy="${(row + 0.5) * CELL}" r="3.6"><title>${escapeXml(tip)}</title></circle>`;
}

const escapeXml = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
