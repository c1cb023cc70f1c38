/**
 * `make && node dist/test/bench/page.js`: what the page costs. Times of painting in headless Chromium, whose software
 * raster is the slow case, with the raster done (a pixel is read back); and the size of the page's script. Needs no
 * root, takes some seconds; a busy machine gives other figures.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { CHROMIUM, launchChromium } from '../browser/chromium.ts';
import { describeMachine, ROOT } from './measure.ts';
import { measureInteraction } from './page-interaction.ts';

const ROUNDS = 40;
const VIEW = { width: 2560, height: 1440 };

/** What runs in the browser: the page's own model and painter. Boxes are as narrow as they can be with a label or not. */
const HARNESS = `
  import { buildModel } from '../../common/flame/flame-model.ts';
  import { FlamePainter, ROW_HEIGHT } from './flame/flame-painter.ts';
  import { makeTheme } from './state/theme.ts';

  const frame = (count) => ({
    strings: Array.from({ length: count }, (_, i) => 'function_' + i),
    kinds: ['native', 'kernel', 'cpython', 'v8js'],
    frames: {
      name: Array.from({ length: count }, (_, i) => i),
      file: new Array(count).fill(0),
      mapping: new Array(count).fill(0),
      kind: Array.from({ length: count }, (_, i) => i % 4),
    },
  });
  const answer = (parent, self) => ({
    ...frame(997),
    nodes: { parent, self, frame: parent.map((_, i) => i % 997) },
    samples: 0, allSamples: 0, cpuNanos: 0, cpus: 1, fromMs: 0, toMs: 1, timeline: [],
    folded: { nodes: 0, samples: 0 },
  });

  /** \`columns\` stacks side by side, each \`rows\` deep, breadth first. */
  const grid = (rows, columns) => {
    const parent = [0];
    const self = [0];
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        parent.push(row === 0 ? 0 : 1 + (row - 1) * columns + column);
        self.push(row === rows - 1 ? 1 : 0);
      }
    return buildModel(answer(parent, self));
  };

  globalThis.measure = ({ rows, columns, bottom, rounds, width, height }) => {
    const start = performance.now();
    const model = grid(rows, columns);
    const built = performance.now() - start;
    const canvas = document.createElement('canvas');
    document.body.append(canvas);
    const painter = new FlamePainter(canvas);
    const scene = {
      model, theme: makeTheme(false), root: 0, from: 0, to: columns, width, height, isFlipped: false,
      rows: rows + 1, found: undefined, colour: 'kind', hovered: undefined, selected: undefined,
      scrollTop: bottom ? (rows + 1) * ROW_HEIGHT - height : 0,
    };
    const context = canvas.getContext('2d');
    const times = [];
    let boxes = 0;
    for (let i = 0; i < rounds; i++) {
      const before = performance.now();
      boxes = painter.paint(scene);
      context.getImageData(0, 0, 1, 1);
      times.push(performance.now() - before);
    }
    canvas.remove();
    times.sort((a, b) => a - b);
    return { boxes, built, best: times[0], median: times[rounds >> 1] };
  };
`;

interface Figures {
  boxes: number;
  built: number;
  best: number;
  median: number;
}

async function measurePainting(): Promise<void> {
  const bundle = await build({
    stdin: { contents: HARNESS, resolveDir: join(ROOT, 'collector/web'), loader: 'ts' },
    bundle: true,
    format: 'iife',
    write: false,
  });
  const browser = await launchChromium();
  const page = await browser.newPage({ viewport: VIEW });
  await page.addScriptTag({ content: bundle.outputFiles[0]!.text });
  const cases = [
    { what: '20,000 boxes in sight', rows: 67, columns: 300, bottom: false },
    { what: '15,000 boxes, each wide enough for two letters', rows: 67, columns: 220, bottom: false },
    { what: '2,800 rows deep, at the bottom', rows: 2800, columns: 30, bottom: true },
    { what: '2,800 rows deep, at the top', rows: 2800, columns: 30, bottom: false },
  ];
  for (const { what, ...shape } of cases) {
    const options = JSON.stringify({ ...shape, ...VIEW, rounds: ROUNDS });
    const { boxes, built, best, median } = await page.evaluate<Figures>(`measure(${options})`);
    console.log(
      `| ${what} | ${boxes.toLocaleString('en-US')} | ${built.toFixed(0)} ms | ${best.toFixed(1)} ms | ${median.toFixed(1)} ms |`,
    );
  }
  const { boxes, latencies } = await measureInteraction(browser, { rows: 68, columns: 300, rounds: ROUNDS });
  const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)]!;
  console.log(
    `\nFrom a key to the frame that shows it, on the real page with ${boxes.toLocaleString('en-US')} boxes: ` +
      `best ${at(0)} ms, median ${at(0.5)} ms, 90th percentile ${at(0.9)} ms (in steps of 8 ms).`,
  );
  await browser.close();
}

function printSizes(): void {
  const directory = join(ROOT, 'build/web');
  for (const name of readdirSync(directory).filter((file) => /\.(js|css)$/.test(file))) {
    const bytes = readFileSync(join(directory, name));
    const kib = (size: number): string => `${(size / 1024).toFixed(1)} KiB`;
    console.log(`${name}: ${kib(bytes.length)}, gzipped ${kib(gzipSync(bytes).length)}`);
  }
}

console.log(describeMachine());
printSizes();
if (CHROMIUM === undefined) console.log('painting is not measured: Chromium is not installed');
else {
  console.log('\n| what | boxes painted | model built | best paint | median paint |\n|---|--:|--:|--:|--:|');
  await measurePainting();
}
