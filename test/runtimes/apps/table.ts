/** The table of docs/interpreters/apps.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { App } from './apps.ts';
import type { Shown } from './observe.ts';

const HEAD = [
  '| app | own functions | samples | stacks whole and named | at the lines of their functions | rooted | missing |',
  '|---|---|--:|--:|--:|--:|---|',
];

/** Replaces what is between the page's marks; apps that were not run keep their rows. */
export function writeTable(page: string, apps: readonly App[], shown: ReadonlyMap<string, Shown>): void {
  const old = readFileSync(page, 'utf8');
  const rows = apps.flatMap((app) => {
    const found = shown.get(app.name);
    const row = found
      ? describeRow(app, found)
      : old.split('\n').find((line) => line.startsWith(`| ${app.title} |`));
    return row ?? [];
  });
  const table = `<!-- table -->\n${[...HEAD, ...rows].join('\n')}\n<!-- end -->`;
  writeFileSync(
    page,
    old.replace(/<!-- table -->[\s\S]*<!-- end -->/, () => table),
  );
}

function describeRow(app: App, found: Shown): string {
  const { samples, whole, own, elsewhere, leaf, rooted, missing } = found;
  const percent = (part: number, all: number): string => `${((100 * part) / Math.max(1, all)).toFixed(1)} %`;
  const marks = [...missing].sort(([, a], [, b]) => b - a).map(([mark, count]) => `${count} \`${mark}\``);
  return [
    '',
    app.title,
    app.own.map(([name]) => `\`${name}\``).join(', '),
    samples,
    percent(whole, samples),
    percent(own - elsewhere, own),
    percent(rooted, leaf),
    marks.join(', ') || '–',
    '',
  ]
    .join(' | ')
    .trim();
}
