import { describe, expect, it } from 'vitest';
import { anchorsOf, badDecisions, deadLinks, deadMentions, linksOf } from './doc-links.ts';

const HEAD = '# T\n\n- Date: 2026-11-21\n- Status: accepted\n- Component: `agent/jit`\n';
const exists = (path: string) =>
  ['docs/a.md', 'docs/b.md', 'docs', 'agent/jit', 'docs/decisions/page/zoom.md'].includes(path);

describe('links of documents', () => {
  it('are found outside of code, and only where they lead to files', () => {
    const text =
      'see [a](a.md#top), `[no](x.md)`, [web](https://example.org)\n```\n[no](y.md)\n```\n![p](images/p.png)\n';
    expect(linksOf(text)).toEqual([
      { target: 'a.md#top', line: 1 },
      { target: 'images/p.png', line: 5 },
    ]);
  });

  it('may ask for headings as GitHub writes them', () => {
    const text =
      '# By file: CPython\n## `show symbol`, *fast*\n## Twice\n## Twice\n```\n# no heading\n```\n<a name="deno"></a>';
    expect([...anchorsOf(text)]).toEqual(['deno', 'by-file-cpython', 'show-symbol-fast', 'twice', 'twice-1']);
  });

  it('that lead nowhere are told, with their place', () => {
    const pages = [
      { path: 'docs/a.md', text: '# A\n[b](b.md#b) [a](#a) [up](../docs/b.md)\n[gone](c.md) [no](b.md#c)\n' },
      { path: 'docs/b.md', text: '# B\n' },
    ];
    expect(deadLinks(pages, exists)).toEqual([
      'docs/a.md:3: c.md does not exist',
      'docs/a.md:3: docs/b.md has no heading #c',
    ]);
  });

  it('in source comments are told where the document is not there', () => {
    const text = '// See docs/a.md. docs/gone.md; x/docs/no.md and docs/specification.md are elsewhere\n';
    expect(deadMentions([{ path: 'agent/x.ts', text }], exists)).toEqual([
      'agent/x.ts: names docs/gone.md, which does not exist',
    ]);
  });
});

describe('pages of decisions', () => {
  const page = { path: 'docs/decisions/page/zoom.md', text: HEAD };
  const index = { path: 'docs/decisions/README.md', text: '[zoom](page/zoom.md)' };
  const user = { path: 'docs/a.md', text: '[why](decisions/page/zoom.md#x)' };

  it('pass with a head, a line in the index and a link from a document', () => {
    expect(badDecisions([page, index, user], exists)).toEqual([]);
  });

  it('are told what they lack', () => {
    expect(badDecisions([{ ...page, text: '# T\n\n- Component: `agent/gone`\n' }], exists)).toEqual([
      `${page.path}: has no line "- Date: YYYY-MM-DD"`,
      `${page.path}: has no line "- Status: accepted"`,
      `${page.path}: its component agent/gone does not exist`,
      `${page.path} is not in docs/decisions/README.md`,
      `${page.path} is linked from no document outside docs/decisions`,
    ]);
    expect(badDecisions([{ ...page, text: '# T\n' }, index, user], exists)).toContain(
      `${page.path}: has no line "- Component: \`path\`"`,
    );
  });
});
