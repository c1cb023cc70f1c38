/**
 * All commands as a few files that import nothing but Node's own modules and DuckDB. They lie in dist/, where their sources'
 * compiled files lie in a checkout, and each module is told that it is still there: it looks for build/ from its own place.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';

const ENTRIES = [
  'cli/main',
  'cli/symbols/name-worker',
  'collector/symbols/symbol-worker',
  'collector/import/import-worker',
];
/** Writes the workers' code, where a release is installed. */
const BUILD_ENTRY = 'scripts/write-worker-code';

// a package of old calls require()
const BANNER = `import { createRequire as requireOf } from 'node:module';
const require = requireOf(import.meta.url);`;

/** `import.meta` of a compiled file, from a chunk that lies in dist/chunks or of an entry deeper in dist. */
function placeModules(root: string): Plugin {
  return {
    name: 'places',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const own = relative(root, path).replace(/\.ts$/, '.js');
        if (own.startsWith('..') || !/import\.meta\.(url|dirname|filename)/.test(text)) return undefined;
        const places = `import { placeOf as placeOfModule } from 'everyframe:places'; const modulePlace = placeOfModule(${JSON.stringify(own)});`;
        const contents = text.replaceAll(/import\.meta\.(url|dirname|filename)/g, 'modulePlace.$1');
        // behind #!
        return { contents: contents.replace(/^(#!.*\n)?/, (line) => `${line}${places}`), loader: 'ts' };
      });
      build.onResolve({ filter: /^everyframe:places$/ }, () => ({ path: 'places', namespace: 'places' }));
      build.onLoad({ filter: /.*/, namespace: 'places' }, () => ({ contents: PLACES, resolveDir: root }));
    },
  };
}

const PLACES = `
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
const dist = import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/') + '/dist/'.length);
export function placeOf(own) {
  const url = dist + own;
  const filename = fileURLToPath(url);
  return { url, filename, dirname: dirname(filename) };
}`;

/** Returns the npm packages that are in it. */
export async function bundleCommands(root: string, target: string): Promise<Set<string>> {
  const options: BuildOptions & { metafile: true } = {
    absWorkingDir: root,
    outbase: root,
    outdir: join(target, 'dist'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    minifySyntax: true,
    chunkNames: 'chunks/[name]-[hash]',
    external: ['@duckdb/*'],
    banner: { js: BANNER },
    plugins: [placeModules(root)],
    logLevel: 'warning',
    metafile: true,
  };
  const made = await build({
    ...options,
    splitting: true,
    entryPoints: ENTRIES.map((entry) => `${entry}.ts`),
  });
  await build({ ...options, entryPoints: [`${BUILD_ENTRY}.ts`] });
  // the Makefile has bundled it
  const telemetry = await build({ ...options, write: false, entryPoints: ['cli/telemetry/otlp.ts'] });
  return new Set([made, telemetry].flatMap(({ metafile }) => [...packagesOf(metafile)]));
}

function packagesOf(metafile: Metafile): Set<string> {
  const names = new Set<string>();
  for (const path of Object.keys(metafile.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(path)?.[1];
    if (name) names.add(name);
  }
  return names;
}
