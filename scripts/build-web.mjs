#!/usr/bin/env node
// Bundles the page into build/web: index.html, icon.svg, the libraries' licences, and script and styles with a hash of
// their content in the name. index.html is written last, because make takes its time for the whole page's.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'collector/web');
const target = join(root, 'build/web');

const { outputFiles } = await build({
  entryPoints: [join(source, 'main.tsx'), join(source, 'styles.css')],
  outdir: target,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome116', 'firefox124', 'safari17.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  entryNames: '[name]-[hash]',
  banner: {
    js: '/*! With Preact, uPlot and RE2JS: see preact.LICENSE.txt, uplot.LICENSE.txt, re2js.LICENSE.txt */',
  },
  write: false,
});

let html = readFileSync(join(source, 'index.html'), 'utf8');
mkdirSync(target, { recursive: true });
const copies = {
  'icon.svg': join(source, 'icon.svg'),
  'preact.LICENSE.txt': join(root, 'node_modules/preact/LICENSE'),
  'uplot.LICENSE.txt': join(root, 'node_modules/uplot/LICENSE'),
  're2js.LICENSE.txt': join(root, 'node_modules/re2js/LICENSE'),
};
const names = ['index.html', ...Object.keys(copies), ...outputFiles.map(({ path }) => basename(path))];
for (const { path, contents } of outputFiles) {
  writeFileSync(path, contents);
  const name = basename(path);
  html = html.replace(name.replace(/-[0-9A-Z]{8}\./, '.'), name);
}
for (const [name, from] of Object.entries(copies)) copyFileSync(from, join(target, name));
writeFileSync(join(target, 'index.html'), html);
for (const old of readdirSync(target)) if (!names.includes(old)) rmSync(join(target, old));

// The page of a single profile: one file that holds its script and styles, into which cli/output/profile-files.ts puts data.
const inlined = await build({
  entryPoints: [join(source, 'standalone.tsx'), join(source, 'styles.css')],
  outdir: target,
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['chrome116', 'firefox124', 'safari17.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  write: false,
});
const textOf = (ending) => inlined.outputFiles.find(({ path }) => path.endsWith(ending)).text;
const licences = ['preact', 're2js'].map(
  (name) => `${name}:\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`,
);
const parts = {
  '/*styles*/': textOf('.css'),
  '/*script*/': `/*! With ${licences.join('\n')}*/\n${textOf('.js').replaceAll('</script', '<\\/script')}`,
};
let standalone = readFileSync(join(source, 'standalone.html'), 'utf8');
for (const [mark, text] of Object.entries(parts)) standalone = standalone.replace(mark, () => text);
writeFileSync(join(root, 'build/standalone.html'), standalone);
