/**
 * What documents and source comments point to, and what is wrong with it. Links are those of Markdown that lead to a file of
 * this repository; source comments name documents by their path from the root (`docs/store.md`).
 */
import { posix } from 'node:path';

export interface Document {
  /** From the repository's root, with slashes. */
  path: string;
  text: string;
}

interface Link {
  target: string;
  line: number;
}

const CHAPTER_PAGE = /^docs\/decisions\/[a-z-]+\/[a-z0-9-]+\.md$/;
const DECISIONS_INDEX = 'docs/decisions/README.md';
/** Paths that source comments cite from other projects' repositories. */
const FOREIGN = ['docs/design', 'docs/specification.md'];

/** Links of a page to files of this repository and to headings; not those in code. */
export function linksOf(text: string): Link[] {
  const links: Link[] = [];
  let fenced = false;
  text.split('\n').forEach((line, index) => {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    if (fenced) return;
    const prose = line.replaceAll(/`[^`]*`/g, '``');
    for (const [, target = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (!/^[a-z]+:/i.test(target)) links.push({ target, line: index + 1 });
    }
  });
  return links;
}

/** Fragments that a page can be asked for: its headings, as GitHub writes them, and `<a name="…">`. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, name = ''] of text.matchAll(/<a name="([^"]+)">/g)) anchors.add(name);
  for (const [, heading = ''] of text.replaceAll(/^```.*?^```/gms, '').matchAll(/^#{1,6} (.*)$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    let [unique, count] = [slug, 0];
    while (anchors.has(unique)) unique = `${slug}-${++count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** A sentence for each link that leads nowhere. `exists` is asked for files and folders. */
export function deadLinks(pages: Document[], exists: (path: string) => boolean): string[] {
  const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  return pages.flatMap(({ path, text }) =>
    linksOf(text).flatMap(({ target, line }) => {
      const [file = '', fragment] = target.split('#');
      const to = resolveLink(path, file);
      if (!exists(to)) return [`${path}:${line}: ${target} does not exist`];
      const known = anchors.get(to);
      return fragment && known && !known.has(fragment)
        ? [`${path}:${line}: ${to} has no heading #${fragment}`]
        : [];
    }),
  );
}

/** A sentence for each document that a source file names and that is not there. */
export function deadMentions(sources: Document[], exists: (path: string) => boolean): string[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/(?<![\w/.-])docs\/[\w./-]*\w/g)]
      .map(([name]) => name)
      .filter((name) => !exists(name) && !FOREIGN.some((prefix) => name.startsWith(prefix)))
      .map((name) => `${path}: names ${name}, which does not exist`),
  );
}

/** What a page of a decision lacks: its head, its line in the index, a link from the document of what it decides. */
export function badDecisions(pages: Document[], exists: (path: string) => boolean): string[] {
  const indexed = targetsOf(pages.filter(({ path }) => path === DECISIONS_INDEX));
  const linked = targetsOf(pages.filter(({ path }) => !path.startsWith('docs/decisions/')));
  return pages
    .filter(({ path }) => CHAPTER_PAGE.test(path))
    .flatMap(({ path, text }) => [
      ...badHead(text, exists).map((problem) => `${path}: ${problem}`),
      ...(indexed.has(path) ? [] : [`${path} is not in ${DECISIONS_INDEX}`]),
      ...(linked.has(path) ? [] : [`${path} is linked from no document outside docs/decisions`]),
    ]);
}

function badHead(text: string, exists: (path: string) => boolean): string[] {
  const problems: string[] = [];
  if (!/^- Date: \d{4}-\d\d-\d\d(, extended \d{4}-\d\d-\d\d)?$/m.test(text))
    problems.push('has no line "- Date: YYYY-MM-DD"');
  if (!/^- Status: (accepted|replaced by \[.*)$/m.test(text))
    problems.push('has no line "- Status: accepted"');
  const component = /^- Component: (.*)$/m.exec(text)?.[1];
  if (component === undefined) problems.push('has no line "- Component: `path`"');
  for (const [, path = ''] of (component ?? '').matchAll(/`([^`]+)`/g)) {
    if (!exists(path)) problems.push(`its component ${path} does not exist`);
  }
  return problems;
}

function targetsOf(pages: Document[]): Set<string> {
  return new Set(
    pages.flatMap(({ path, text }) =>
      linksOf(text).map(({ target }) => resolveLink(path, target.split('#')[0] ?? '')),
    ),
  );
}

function resolveLink(from: string, file: string): string {
  return file === '' ? from : posix.normalize(posix.join(posix.dirname(from), file));
}
