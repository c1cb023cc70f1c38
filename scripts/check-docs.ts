/**
 * check-docs: links of tracked documents, and documents that source files name, lead somewhere; pages of decisions have what
 * docs/decisions/README.md asks of them. Prints what does not hold, and exits with 1.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import process from 'node:process';
import { badDecisions, type Document, deadLinks, deadMentions } from './doc-links.ts';

const SOURCES = [
  '*.ts',
  '*.tsx',
  '*.mjs',
  '*.c',
  '*.h',
  '*.cc',
  '*.hh',
  '*.sh',
  '*.yaml',
  '*.yml',
  'bin/*',
  'Makefile',
];
/** Fewer means that this looked in the wrong place. */
const MIN_PAGES = 60;
const MIN_SOURCES = 500;

function read(patterns: string[]): Document[] {
  const paths = execFileSync('git', ['ls-files', '-z', '--', ...patterns], { encoding: 'utf8' }).split('\0');
  return paths
    .filter((path) => path !== '' && existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

const pages = read(['*.md']);
// a test of these checks names what is not there
const sources = read(SOURCES).filter(
  ({ path }) => path !== 'scripts/doc-links.test.ts' && path !== 'ebpf/vmlinux.h',
);
const problems = [
  ...(pages.length < MIN_PAGES || sources.length < MIN_SOURCES
    ? [`saw ${pages.length} pages and ${sources.length} sources`]
    : []),
  ...deadLinks(pages, existsSync),
  ...deadMentions(sources, existsSync),
  ...badDecisions(pages, existsSync),
];
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}
