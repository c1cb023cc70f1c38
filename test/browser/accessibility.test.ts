/** The page under axe's rules, in both colour schemes, and by keyboard alone. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM } from './chromium.ts';
import { ShownPage } from './shown-page.ts';

if (CHROMIUM === undefined)
  console.log('skipped: accessibility is not tested, because Chromium is not installed');

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TEXT = `
server:10;_start@n;main@n;serve@n;parse_json@n 30
server:10;_start@n;main@n;serve@n;write@n;do_syscall_64@k;tcp_sendmsg@k 20
worker:20;start@j;renderPage@j;parse_json@j 40
cut:9;main@p:/srv/app.py:3;[cut: no unwind table]@m 10
`;

/** One line a violation: the rule, how bad it is, and where. */
const listViolations = ({ violations }: AxeResults): string[] =>
  violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${impact}): ${target} ${failureSummary}`),
  );

describe.skipIf(CHROMIUM === undefined)('for everybody, the page', () => {
  let shown: ShownPage;
  let endMs: number;

  beforeAll(async () => {
    shown = await ShownPage.start();
    endMs = Date.now();
    await shown.push(...[endMs - 5000, endMs].map((end) => ({ text: TEXT, endMs: end, spanMs: 5000 })));
  });
  afterAll(() => shown.stop());

  const openPage = (hash: string): Promise<Page> => shown.open(`from=${endMs - 5000}&to=${endMs}&${hash}`);

  it.each([
    ['icicle', 'view=icicle&search=parse&where=process!%3Dnone', '.flame canvas[data-boxes]'],
    ['flame graph', 'view=flame&transform=recursion%3Dall', '.flame canvas[data-boxes]'],
    ['inverted', 'view=inverted', '.flame canvas[data-boxes]'],
    ['colours by library', 'colour=library', '.flame canvas[data-boxes]'],
    ['colours by difference', 'colour=difference', '.flame canvas[data-boxes]'],
    ['top functions', 'view=top', '.tree tbody tr'],
    ['callers', 'view=callers&function=parse_json', '.half canvas[data-boxes]'],
    ['call tree', 'view=tree', '.tree tbody tr'],
    ['source', 'view=source&file=/srv/app.py', '.source tbody tr'],
    ['source files', 'view=source', '.functions tbody tr'],
    ['time', 'view=time', '.chart canvas[data-boxes]'],
    ['threads', 'view=threads', '.lanes canvas[data-lanes]'],
    ['diff', 'view=diff', '.flame canvas[data-boxes]'],
    ['health', 'view=health', '.stages'],
    ['nothing', 'where=process%3Dnobody', '.empty'],
  ])('breaks no rule of axe: %s', async (_, hash, sign) => {
    const page = await openPage(hash);
    await page.locator(sign).first().waitFor();
    await page.locator('.facets li').first().waitFor();
    await page.evaluate(AXE);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const results = await page.evaluate<AxeResults>('axe.run(document)');
      expect(listViolations(results), colorScheme).toEqual([]);
      expect(results.passes.length).toBeGreaterThan(15);
    }
    await page.close();
  });

  it('breaks none with its menu and its help open', async () => {
    const page = await openPage('');
    await page.locator('.flame-scroller').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'm']) await page.keyboard.press(key);
    await page.getByRole('menu').waitFor();
    await page.evaluate(AXE);
    expect(listViolations(await page.evaluate<AxeResults>('axe.run(document)'))).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    expect(listViolations(await page.evaluate<AxeResults>('axe.run(document)'))).toEqual([]);
    await page.close();
  });

  it('is reached by Tab, all of it, and the focus is seen', async () => {
    const page = await openPage('where=process!%3Dnone');
    await page.locator('.flame canvas[data-boxes]').waitFor();
    const reached: string[] = [];
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      const [name, outline] = await page.evaluate<[string, string]>(`(() => {
        const element = document.activeElement;
        // Behind the last stop comes the browser's own.
        if (element === document.body) return ['', ''];
        const name = element.getAttribute('aria-label') || element.innerText || element.tagName;
        return [name.trim().replaceAll('\\n', ' '), getComputedStyle(element).outlineStyle];
      })()`);
      if (name === '' || reached.includes(name)) break;
      expect(outline, name).not.toBe('none');
      reached.push(name);
    }
    for (const wanted of [
      '1 min',
      'Pause',
      'Search functions',
      'Export',
      'Help',
      'Processes',
      'Threads',
      'Filter samples',
      'remove process!=none',
      'Stack by',
      'Icicle',
      'My code only',
      'all',
      'Shift with arrows',
      'Icicle: arrow keys walk the boxes',
    ]) {
      expect(
        reached.some((name) => name.includes(wanted)),
        wanted,
      ).toBe(true);
    }
    await page.close();
  });
});
