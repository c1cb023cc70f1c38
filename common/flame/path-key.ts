/**
 * Names of the boxes of a flame graph: a hash over the functions from the process to the box, the same for the page that draws a
 * box and for the collector that is asked for it, in every answer. 62 bits: of a million boxes two meet once in ten million pictures.
 */

/** What tells two frames apart in a picture: lines are merged. */
export interface KeyFrame {
  name: string;
  file: string;
  mapping: string;
  kind: string;
}

/** Two hashes for each of some things. */
export interface Hashes {
  low: Uint32Array;
  high: Uint32Array;
}

/** A hash of one thing. */
export interface PathHash {
  low: number;
  high: number;
}

const ROOT: PathHash = { low: 0x9e3779b9, high: 0x7f4a7c15 };
const DIGITS = 7;
const FORM = /^[0-9a-z]{14}$/;

/** Two hashes of FNV-1a's kind, with multipliers of their own. */
function hashText(text: string): PathHash {
  let low = 0x811c9dc5;
  let high = 0x01234567;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x5bd1e995);
    high ^= high >>> 15;
  }
  return { low: low >>> 0, high: high >>> 0 };
}

export const hashFrame = ({ name, file, mapping, kind }: KeyFrame): PathHash =>
  hashText(`${name}\0${mapping}\0${file}\0${kind}`);

/** MurmurHash3's step of a block: the order of a path counts. */
function mix(hash: number, block: number): number {
  let k = Math.imul(block, 0xcc9e2d51);
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593);
  const mixed = hash ^ k;
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) >>> 0;
}

/**
 * Of each node, given parents before their children. Node 0 is the root, whose frame does not count.
 *
 * @param frameHash of a node's frame; asked once a node
 */
export function hashPaths(parents: ArrayLike<number>, frameHash: (node: number) => PathHash): Hashes {
  const low = new Uint32Array(parents.length);
  const high = new Uint32Array(parents.length);
  low[0] = ROOT.low;
  high[0] = ROOT.high;
  for (let node = 1; node < parents.length; node++) {
    const above = parents[node]!;
    const hash = frameHash(node);
    low[node] = mix(low[above]!, hash.low);
    high[node] = mix(high[above]!, hash.high);
  }
  return { low, high };
}

/** One more step: from a box to the one below it. */
export const stepDown = (above: PathHash, frame: PathHash): PathHash => ({
  low: mix(above.low, frame.low),
  high: mix(above.high, frame.high),
});

export const ROOT_HASH = ROOT;

export const formatKey = (low: number, high: number): string =>
  low.toString(36).padStart(DIGITS, '0') + high.toString(36).padStart(DIGITS, '0');

/** A box that is looked at: by its path, and without so many of its largest children. */
export interface ZoomKey extends PathHash {
  /** Those children of the box that are shown beside: what is looked at is the box of all others. 0: the box itself. */
  without: number;
}

const MAX_WITHOUT = 1_000_000;

/** `KEY`, or `KEY~12` for what its 12 largest children leave; undefined where the text is neither. */
export function parseZoom(text: string): ZoomKey | undefined {
  const [key = '', without] = text.split('~');
  const count = without === undefined ? 0 : Number(without);
  if (!FORM.test(key) || !(Number.isInteger(count) && count >= 0 && count <= MAX_WITHOUT)) return undefined;
  const [low, high] = [key.slice(0, DIGITS), key.slice(DIGITS)].map((half) => Number.parseInt(half, 36));
  return { low: low!, high: high!, without: count };
}
