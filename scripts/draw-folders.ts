/**
 * draw-folders [--check] [--out FILE.svg] [--title TEXT]: the folders of the product in the current directory, and what each
 * imports, as a matrix.
 *
 * A row is a folder that imports, a column one that is imported, both in the same order: whoever imports comes before what it
 * imports. So every mark is right of the diagonal unless folders need each other; what is left of it is red. `--check` fails
 * where there is such a circle. A folder is the files that it holds itself here, so that it and its sub-folder are two.
 */
import { writeFileSync } from 'node:fs';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { FolderGraph, type Import } from './folder-graph.ts';
import { drawMatrix } from './folder-matrix.ts';

const PARTS = ['cli', 'agent', 'collector', 'otlp-client', 'common'];
const MIN_FILES = 100;
/** Named with each circle. */
const MAX_IMPORTS = 3;

async function readImports(): Promise<Import[]> {
  const { output } = await cruise(PARTS, {
    tsPreCompilationDeps: 'specify',
    exclude: { path: '\\.test\\.tsx?$' },
    doNotFollow: { path: '^(node_modules|build)/' },
  });
  const { modules } = output as ICruiseResult;
  // a TypeScript that dependency-cruiser can't load makes it see none
  if (modules.length < MIN_FILES) throw new Error(`dependency-cruiser saw ${modules.length} modules`);
  return modules.flatMap(({ source, dependencies }) =>
    dependencies
      .filter(({ resolved }) => PARTS.some((part) => resolved.startsWith(`${part}/`)))
      .map(({ resolved, dependencyTypes }) => ({
        from: source,
        to: resolved,
        isType: dependencyTypes.includes('type-only'),
      })),
  );
}

/** One line a pair of folders within a circle. */
function tellCircles(graph: FolderGraph): string[] {
  return graph
    .knots()
    .filter((knot) => knot.length > 1)
    .flatMap((knot) => [
      `these folders need each other: ${knot.join(', ')}`,
      ...graph.edges
        .filter(({ from, to }) => knot.includes(from) && knot.includes(to))
        .map(({ from, to, imports }) => {
          const some = imports.slice(0, MAX_IMPORTS).map((one) => `${one.from} → ${one.to}`);
          return `  ${from} → ${to}, ${imports.length} times: ${some.join(', ')}`;
        }),
    ]);
}

const { values: options } = parseArgs({
  options: {
    check: { type: 'boolean' },
    out: { type: 'string' },
    title: { type: 'string', default: 'Folders and their imports' },
  },
});
const graph = new FolderGraph(await readImports());
if (options.out !== undefined) writeFileSync(options.out, drawMatrix(graph, options.title));
const circles = tellCircles(graph);
console.log(circles.length === 0 ? `no circle among ${graph.folders.length} folders` : circles.join('\n'));
if (options.check && circles.length > 0) process.exitCode = 1;
