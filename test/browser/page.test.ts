import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Collector, startCollector } from '../../collector/main.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import { CHROMIUM, launchChromium } from './chromium.ts';
import { encodeOtlp } from './encode-otlp.ts';
import { Pusher } from './push.ts';
import { profileFromText } from './synthetic-profile.ts';

if (CHROMIUM === undefined) console.log('skipped: the page is not tested, because Chromium is not installed');

const TEXT = `
server:10;_start@n;main@n;serve@n;handle_request@n;parse_json@n 30
server:10;_start@n;main@n;serve@n;handle_request@n;write@n;do_syscall_64@k;tcp_sendmsg@k 20
server:10;_start@n;main@n;serve@n;log_line@n 10
worker:20;start@j;renderPage@j;parse_json@j 40
`;
const DEEP = `deep:30;${Array.from({ length: 1200 }, (_, i) => `level${i}@n`).join(';')} 100`;

/** A tab and two keys, all before the page can be drawn. */
const CLICK_AND_TYPE = `
  const tab = document.querySelector('#tab-icicle');
  tab.click();
  for (const key of ['2', 't']) tab.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
`;

/** Colours that fill more than a few characters: those of boxes. Text, because these types know no browser. */
const COUNT_COLOURS = `(() => {
  const canvas = document.querySelector('.flame canvas');
  const pixels = new Uint32Array(
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer,
  );
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return [...counts.values()].filter((count) => count > 2000).length;
})()`;

const BUILT = new URL('../../build/web/', import.meta.url);

it('has at most 150 KB of script, gzipped', () => {
  const scripts = readdirSync(BUILT).filter((name) => name.endsWith('.js'));
  expect(scripts).toHaveLength(1);
  expect(gzipSync(readFileSync(new URL(scripts[0]!, BUILT))).length).toBeLessThanOrEqual(150_000);
});

describe.skipIf(CHROMIUM === undefined)('the page', () => {
  let browser: Browser;
  let collector: Collector;
  let pusher: Pusher;
  let page: Page;
  let problems: string[];

  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  beforeEach(async () => {
    const logger = {
      info: () => {},
      warn: () => {},
      error: (...what: unknown[]) => void problems.push(String(what)),
    };
    collector = await startCollector({
      grpcListen: '127.0.0.1:0',
      httpListen: '127.0.0.1:0',
      pageListen: '127.0.0.1:0',
      maxMemoryBytes: 2 ** 26,
      traceUrl: 'http://traces.example/trace/{trace_id}?from=page',
      logger,
    });
    pusher = new Pusher(collector.urls.grpc);
    problems = [];
    page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
    page.setDefaultTimeout(10_000);
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('request', (request) => {
      if (!request.url().startsWith(collector.urls.page)) problems.push(`request to ${request.url()}`);
    });
  });
  afterEach(async () => {
    await page.close();
    pusher.close();
    await collector.stop();
    expect(problems).toEqual([]);
  });

  const push = (text: string) =>
    pusher.push(encodeOtlp(profileFromText(text, { endMs: Date.now(), spanMs: 5000 })));
  const open = async (hash = ''): Promise<void> => {
    await page.goto(collector.urls.page + hash);
  };
  const graph = () => page.locator('.flame-scroller');
  const boxes = async (): Promise<number> =>
    Number(await page.locator('.flame canvas').getAttribute('data-boxes'));
  const untilBoxes = (count: number) => expect.poll(boxes, { timeout: 10_000 }).toBe(count);
  const spoken = () => page.locator('[aria-live=polite]').textContent();
  /** Middle of a box: row from the top, place as a share of the width. */
  const point = async (row: number, share: number): Promise<{ x: number; y: number }> => {
    const { x, y, width } = (await page.locator('.flame canvas').boundingBox())!;
    return { x: x + width * share, y: y + row * 21 + 10 };
  };
  const text = (selector: string) => page.locator(selector).innerText();

  it('says that no agent has connected, and how to start one, until data come', async () => {
    await open();
    await page.getByText('No agent has connected yet').waitFor();
    expect(await text('.empty-command')).toContain(`--collection-agent ${collector.urls.grpc}`);
    expect(await text('.live')).toBe('Waiting for an agent');
    await push(TEXT);
    await untilBoxes(15);
    expect(await text('.live')).toBe('Live · test-host');
    expect(await text('.summary')).toBe('100 samples, about 5.0 s of CPU time');
  });

  it('says why requests are refused', async () => {
    await expect(pusher.push(Buffer.from('no protobuf'))).rejects.toThrow();
    await open();
    await page.getByText('1 request refused').waitFor();
    expect(await text('.empty')).toMatch(/1 × .*last .* ago/);
  });

  it('draws every box in the colour of its kind, follows new data and can be paused', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    expect(await page.evaluate<number>(COUNT_COLOURS)).toBeGreaterThan(5);
    expect(await text('.legend')).toMatch(/native 40\.0 %[\s\S]*kernel 20\.0 %/);
    await push(TEXT.replaceAll('worker', 'late'));
    await untilBoxes(19);
    await page.locator('.areas', { hasText: 'late' }).waitFor();
    await page.keyboard.press('p');
    expect(await text('.live')).toMatch(/^Paused · test-host/);
    // The time is in the address, and in whatever is asked from now on.
    const [, from, to] = /#from=(\d+)&to=(\d+)$/.exec(page.url())!.map(Number);
    expect(to).toBeLessThan(Date.now() + 500);
    expect(from).toBeGreaterThan(to! - 61_000);
    // Behind that time: samples of the time itself are still shown when they come late.
    const later = profileFromText('paused:1;main@n 10', { endMs: to! + 1000, spanMs: 1 });
    await pusher.push(encodeOtlp(later));
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    await page.getByRole('tab', { name: 'Top' }).click();
    await page.getByText('200 samples ·').waitFor();
    await page.locator('summary', { hasText: 'Threads' }).click();
    const queries = (): string[] =>
      asked.filter((url) => url.includes('/api/v1/') && !url.endsWith('/status'));
    await expect.poll(() => queries().some((url) => url.includes('label=thread'))).toBe(true);
    for (const url of queries()) expect(url).toContain(`from=${from}&to=${to}`);
    await page.getByText('Export', { exact: true }).click();
    expect(await page.getByRole('link', { name: 'pprof' }).getAttribute('href')).toContain(
      `from=${from}&to=${to}`,
    );
    await page.keyboard.press('Escape');
    await page.getByRole('tab', { name: 'Icicle' }).click();
    await page.keyboard.press('2');
    await untilBoxes(21);
    expect(page.url()).toContain('range=5m');
  });

  it('keeps a change when another follows before the page is drawn again', async () => {
    await push(TEXT);
    await open('#view=top');
    await page.getByText('100 samples ·').waitFor();
    await page.evaluate(CLICK_AND_TYPE);
    await page.getByRole('tab', { name: 'Call tree', selected: true }).waitFor();
    expect(page.url()).toContain('range=5m');
  });

  it('zooms by click and back by breadcrumb, key and history', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    const { x, y } = await point(5, 0.2);
    await page.mouse.click(x, y);
    await expect.poll(() => text('.breadcrumb')).toContain('handle_request');
    await expect.poll(boxes).toBe(10);
    const zoomed = page.url();
    expect(zoomed).toContain('zoom=');
    await page.keyboard.press('Backspace');
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('serve');
    await page.getByRole('button', { name: 'all', exact: true }).click();
    await untilBoxes(15);
    await page.goBack();
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('serve');
    await page.keyboard.press('Escape');
    await untilBoxes(15);
    await page.goto('about:blank');
    await page.goto(zoomed);
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('handle_request');
  });

  it('shows what is under the pointer', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    const { x, y } = await point(5, 0.2);
    await page.mouse.move(x, y);
    await page.locator('.tooltip').waitFor();
    const tooltip = (await text('.tooltip')).replaceAll(/\s+/g, ' ');
    expect(tooltip).toMatch(/^handle_request native \/usr\/lib\/\S+libc\.so\.6 samples of view of all CPU /);
    expect(tooltip).toContain('Total 50 50.0 % 50.0 % ≈ 2.5 s Self 0 0 % 0 % ≈ 0 ms');
    await page.mouse.move(5, 5);
    await page.locator('.tooltip').waitFor({ state: 'detached' });
  });

  it('searches by text and by expression', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    await page.keyboard.press('/');
    await page.keyboard.type('parse');
    await expect.poll(() => text('.search-note')).toBe('70.0 % in 2 boxes');
    expect(page.url()).toContain('search=parse');
    await page.keyboard.press('Enter');
    await expect.poll(spoken).toMatch(/^parse_json, JavaScript, 40\.0 % /);
    await page.keyboard.press('n');
    await expect.poll(spoken).toMatch(/^parse_json, native, 30\.0 % /);
    await page.keyboard.press('Shift+N');
    await expect.poll(spoken).toMatch(/^parse_json, JavaScript/);
    await page.getByLabel('Search functions').fill('/^(tcp|log)_/');
    await expect.poll(() => text('.search-note')).toBe('30.0 % in 2 boxes');
    await page.getByLabel('Search functions').fill('/(/');
    await expect.poll(() => page.getByLabel('Search functions').getAttribute('aria-invalid')).toBe('true');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByLabel('Search functions').inputValue()).toBe('');
  });

  it('is walked by keyboard, and says where', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    await graph().focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown']) {
      await page.keyboard.press(key);
    }
    await expect
      .poll(spoken)
      .toMatch(/^handle_request, native, 50\.0 % of the view, 50 samples, 0 of its own/);
    await page.keyboard.press('ArrowRight');
    await expect.poll(spoken).toMatch(/^log_line, /);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('handle_request');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'How to read the picture' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.locator('.breadcrumb [aria-current]').innerText()).toBe('handle_request');
  });

  it('filters by process', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    await page
      .locator('.facets')
      .getByRole('button', { name: /^worker/ })
      .click();
    await untilBoxes(5);
    expect(page.url()).toContain('where=process%3Dworker');
    expect(await text('.summary')).toContain('40 samples');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await untilBoxes(15);
    await page.keyboard.press('-');
    await page.getByRole('button', { name: 'remove process=worker' }).click();
    await expect.poll(() => text('.filter .chips')).toContain('process!=server');
    await untilBoxes(5);
    await page.getByLabel('Filter samples').fill('cpu=');
    await page.getByRole('alert').getByText("can't be read").waitFor();
    await page.getByLabel('Filter samples').fill('kind=kernel');
    await page.keyboard.press('Enter');
    await expect.poll(() => text('.summary')).toContain('20 samples');
  });

  it('filters by what else senders say', async () => {
    const profile = profileFromText(TEXT, { endMs: Date.now(), spanMs: 5000 });
    for (const process of profile.processes)
      process.attributes = attributesText([['k8s.pod.name', process.pid === 20 ? 'web-2' : 'web-1']]);
    await pusher.push(encodeOtlp(profile));
    await open();
    await untilBoxes(15);
    await page.locator('.facets').getByText('k8s.pod.name').click();
    await page.getByRole('button', { name: /^web-2/ }).click();
    await untilBoxes(5);
    expect(await text('.summary')).toContain('40 samples');
    expect(await text('.filter .chips')).toContain('k8s.pod.name=web-2');
    await page.reload();
    await untilBoxes(5);
    await page.getByRole('button', { name: /^web-2/, pressed: true }).waitFor();
  });

  it('filters and groups by the traces and spans of samples, where there are any', async () => {
    const [plain, linked] = ['app:1;main@n 30', 'app:1;main@n;serve@n 12'].map((stacks) =>
      profileFromText(stacks, { endMs: Date.now(), spanMs: 5000 }),
    );
    const spanId = 'b7ad6b7169203331';
    linked!.links.push({ traceId: '0af7651916cd43dd8448eb211c80319c', spanId });
    for (const sample of linked!.samples) sample.link = 1;
    await pusher.push(encodeOtlp(plain!));
    await open();
    await expect.poll(() => text('.summary')).toContain('30 samples');
    expect(await page.locator('.facets').getByText('Spans').count()).toBe(0);
    await pusher.push(encodeOtlp(linked!));
    await page.locator('.facets').getByText('Spans').click();
    await page.getByRole('button', { name: /^b7ad6b/ }).click();
    await expect.poll(() => text('.summary')).toContain('12 samples');
    expect(await text('.filter .chips')).toContain(`span_id=${spanId}`);
    await page.locator('.facets').getByText('Traces').click();
    const link = page.getByRole('link', { name: 'Open trace 0af7651916cd43dd8448eb211c80319c' });
    expect(await link.getAttribute('href')).toBe(
      'http://traces.example/trace/0af7651916cd43dd8448eb211c80319c?from=page',
    );
    await page.getByLabel('Stack by').selectOption('trace_id');
    await expect.poll(() => page.url()).toContain('by=trace_id');
    await page.reload();
    await expect.poll(() => text('.summary')).toContain('12 samples');
    await page.locator('.timeline').getByText('0af7651916cd43dd8448eb211c80319c').waitFor();
  });

  it('shows what is brushed on the timeline, by pointer and by keyboard, and a link keeps it', async () => {
    const endMs = Date.now();
    await pusher.push(encodeOtlp(profileFromText(TEXT, { endMs, spanMs: 5000 })));
    await open(`#from=${endMs - 5000}&to=${endMs}`);
    await untilBoxes(15);
    const { x, y, width } = (await page.locator('.u-over').boundingBox())!;
    await page.mouse.move(x + 2, y + 20);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + 30, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toContain(`over_from=${endMs - 5000}&over_to=${endMs}`);
    const [brushed] = /from=\d+&to=\d+/.exec(page.url())!;
    const { samples } = (await (await fetch(`${collector.urls.page}api/v1/tree?${brushed}`)).json()) as {
      samples: number;
    };
    expect(samples).toBeGreaterThan(40);
    expect(samples).toBeLessThan(60);
    await expect.poll(() => text('.summary')).toContain(`${samples} samples`);
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await expect.poll(() => text('.summary')).toContain(`${samples} samples`);
    await page.locator('.timeline-plot').focus();
    await page.keyboard.press('Escape');
    await expect.poll(() => text('.summary')).toContain('100 samples');
    await page.keyboard.press('Home');
    await expect.poll(() => text('.summary')).toMatch(/^(8|9|1\d) samples/);
    await page.getByLabel('Stack by').selectOption('cpu');
    await expect.poll(() => text('.areas')).toMatch(/^ *1 60\.0 %\s+0 40\.0 %$/);
    await page.keyboard.press('1');
    await expect.poll(() => page.url()).not.toContain('from=');
  });

  it('draws stacks of more than a thousand frames, and only what is in sight', async () => {
    await push(DEEP);
    await open();
    await expect.poll(boxes, { timeout: 10_000 }).toBeGreaterThan(20);
    expect(await boxes()).toBeLessThan(60);
    const height = await page.evaluate<number>('document.querySelector(".flame canvas").height');
    expect(height).toBeLessThan(800);
    await graph().evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await graph().focus();
    for (let i = 0; i < 62; i++) await page.keyboard.press('PageDown');
    await expect.poll(spoken).toMatch(/^level1199, .*level 1202$/);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('level1199');
    // At the bottom of the view: above it are its callers.
    expect(await boxes()).toBeLessThan(60);
  });

  it('has the same as a table for screen readers', async () => {
    await push(TEXT);
    await open('#view=tree');
    const table = page.getByRole('treegrid', { name: 'Call tree' });
    await table.waitFor();
    const rows = async (): Promise<string[]> =>
      (await page.locator('.tree tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());
    expect((await rows()).slice(0, 2)).toEqual(['100 % 0 % 100 all all', '60.0 % 0 % 60 server process']);
    await table.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowLeft');
    await expect.poll(async () => (await rows()).length).toBe(3);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.breadcrumb [aria-current]').innerText()).toBe('server');
    await page.keyboard.press('t');
    await graph().waitFor();
  });

  const tab = (name: string) => page.getByRole('tab', { name, exact: true });
  const tableRows = async (): Promise<string[]> =>
    (await page.locator('.tree tbody tr').allInnerTexts()).map((row) => row.replaceAll(/\s+/g, ' ').trim());

  it('has a tab for each way to look, walked by arrow keys, and one picture in three directions', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    await tab('Icicle').focus();
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => page.url()).toContain('view=flame');
    await untilBoxes(15);
    await page.locator('.flame-scroller').focus();
    // Callers are below: the key goes up to what is called.
    for (const key of ['ArrowUp', 'ArrowUp', 'ArrowUp']) await page.keyboard.press(key);
    await expect.poll(spoken).toMatch(/^_start, native/);
    await tab('Inverted').click();
    await untilBoxes(24);
    await page.locator('.flame-scroller').focus();
    for (const key of ['ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    await expect.poll(spoken).toMatch(/^parse_json, JavaScript, 40\.0 %/);
    expect(await text('.legend')).toMatch(/native 40\.0 %[\s\S]*JavaScript 40\.0 %[\s\S]*kernel 20\.0 %/);
  });

  it('shows the chosen tab where the screen is narrower than all of them', async () => {
    await push(TEXT);
    await page.setViewportSize({ width: 390, height: 844 });
    try {
      await open('#view=health');
      const isShown = async (name: string): Promise<boolean> => {
        const { x, width } = (await tab(name).boundingBox())!;
        return x >= 0 && x + width <= 390;
      };
      await expect.poll(() => isShown('Health')).toBe(true);
      expect(await isShown('Icicle')).toBe(false);
      await tab('Health').press('Home');
      await expect.poll(() => isShown('Icicle')).toBe(true);
    } finally {
      await page.setViewportSize({ width: 1280, height: 800 });
    }
  });

  it('names a type of which nothing is left as it does with something of it', async () => {
    await push(TEXT);
    await open('#where=process%3Dnosuch');
    await expect.poll(() => page.getByLabel('Type of samples').innerText()).toMatch(/^CPU: none/);
  });

  it('lists functions, and shows who calls one and what it calls', async () => {
    await push(TEXT);
    await open('#view=top');
    await expect.poll(tableRows).toHaveLength(12);
    expect((await tableRows())[0]).toBe('40.0 % 40.0 % parse_json JavaScript');
    await page.getByRole('button', { name: 'Total', exact: true }).click();
    await expect.poll(async () => (await tableRows())[0]).toMatch(/^0 % 60\.0 % _start native/);
    await page.getByRole('grid', { name: 'Functions' }).focus();
    await page.getByLabel('Search functions').fill('do_sys');
    await expect.poll(tableRows).toEqual(['0 % 20.0 % do_syscall_64 kernel vmlinux']);
    await page.getByRole('grid', { name: 'Functions' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'do_syscall_64' }).waitFor();
    expect(page.url()).toContain('view=callers&function=do_syscall_64'.split('&')[1]);
    await expect.poll(() => text('.summary')).toBe('on the stack in 20 samples of 100 (20.0 %)');
    const halves = async () =>
      (await page.locator('.half canvas').all()).map((canvas) => canvas.getAttribute('data-boxes'));
    await expect.poll(async () => Promise.all(await halves())).toEqual(['7', '2']);
  });

  it('hides, focuses and collapses functions by menu, and takes it back', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    const { x, y } = await point(5, 0.2);
    await page.mouse.click(x, y, { button: 'right' });
    await page.getByRole('menuitem', { name: 'Focus on this function' }).click();
    await untilBoxes(7);
    expect(page.url()).toContain('transform=focus%3Dhandle_request');
    await page.locator('.flame-scroller').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'm'])
      await page.keyboard.press(key);
    await page.getByRole('menu', { name: 'Actions on parse_json' }).waitFor();
    for (const key of ['ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
    await expect.poll(() => text('.transforms .chips')).toContain('hide=parse_json');
    await untilBoxes(6);
    await page.locator('.export summary').click();
    const link = await page.getByRole('link', { name: 'Folded stacks' }).getAttribute('href');
    const folded = await (await fetch(collector.urls.page + link)).text();
    expect(folded.trim().split('\n').sort()).toEqual([
      'server;handle_request 30',
      'server;handle_request;write;do_syscall_64_[k];tcp_sendmsg_[k] 20',
    ]);
    await page.getByRole('button', { name: 'take back focus=handle_request' }).click();
    await page.getByRole('button', { name: 'take back hide=parse_json' }).click();
    await untilBoxes(15);
    await page.getByRole('button', { name: 'My code only' }).click();
    await untilBoxes(6);
  });

  it('shows when things happened: as a heat map, and a thread in the order of time', async () => {
    const endMs = Date.now();
    await pusher.push(encodeOtlp(profileFromText(TEXT, { endMs, spanMs: 4000 })));
    await open(`#from=${endMs - 5000}&to=${endMs}&view=time&where=process%3Dworker`);
    const chart = page.locator('.chart canvas');
    // 40 samples of one stack, 100 ms apart: one box a frame.
    await expect.poll(() => chart.getAttribute('data-boxes')).toBe('3');
    await page.locator('.chart').focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    await expect
      .poll(spoken)
      .toMatch(/^parse_json, JavaScript, at \d\d:\d\d:\d\d\.\d{3} for about 4\.\d s, 40 samples/);
    const { x, y, width } = (await page.locator('.heat-plot canvas').boundingBox())!;
    await page.mouse.click(x + width * 0.5, y + 10);
    await expect.poll(() => page.url()).toContain(`over_from=${endMs - 5000}`);
    await expect.poll(() => text('.summary')).toBe('1 sample');
  });

  it('compares two times, and two filters', async () => {
    const endMs = Date.now();
    const after = TEXT.replace('parse_json@n 30', 'parse_json@n 80');
    await pusher.push(encodeOtlp(profileFromText(TEXT, { endMs: endMs - 10_000, spanMs: 5000 })));
    await pusher.push(encodeOtlp(profileFromText(after, { endMs, spanMs: 5000 })));
    const times = `from=${endMs - 5000}&to=${endMs}&base_from=${endMs - 15_000}&base_to=${endMs - 10_000}`;
    await open(`#${times}&view=diff`);
    await page.getByText('150 samples compared with 100 samples').waitFor();
    await untilBoxes(15);
    await page.locator('.flame-scroller').focus();
    for (let i = 0; i < 7; i++) await page.keyboard.press('ArrowDown');
    await expect.poll(spoken).toMatch(/^parse_json, native, 53\.3 % now, 30\.0 % before, \+23\.3 points/);
    await page.getByRole('button', { name: 'Table' }).click();
    await expect.poll(async () => (await tableRows())[0]).toMatch(/^\+23\.3 points 53\.3 % 30\.0 %/);
    const filter = page.getByLabel('Compare with filter');
    await filter.fill('process=server');
    // the page is drawn anew while somebody types
    await page.evaluate("location.hash += '&search=parse'");
    await expect.poll(() => page.getByLabel('Search functions').inputValue()).toBe('parse');
    expect(await filter.inputValue()).toBe('process=server');
    await filter.press('Enter');
    await page.getByText('150 samples compared with 60 samples').waitFor();
    expect(page.url()).toContain('base_where=process%3Dserver');
  });

  it('says what to do where there is nothing to compare', async () => {
    await push(TEXT);
    await open('#view=diff');
    await page.getByText('The baseline has no samples').waitFor();
    expect(await text('.hint')).toMatch(/hold Shift and drag[\s\S]+Compare with filter/);
  });

  it('says how complete the data are, and what to do about losses', async () => {
    await open('#view=health');
    await page.getByText(`None has connected to ${collector.urls.grpc} yet.`).waitFor();
    await push(`${TEXT}cut:9;[cut: stack memory not resident]@m;main@n 25`);
    await expect.poll(() => text('.health')).toMatch(/stack complete\s+80\.0 %\s+100 of 125/);
    expect(await text('.health')).toMatch(/stored\s+100 %\s+125 of 125/);
    expect(await text('.health')).toContain('start it with --self-metrics');
    expect(await text('.health')).toMatch(
      /stack complete\s+25\s+20\.0 %\s+a page of the stack was not in memory\s+Only/,
    );
    await page.getByRole('button', { name: 'cut', exact: true }).click();
    await expect.poll(() => text('.summary')).toContain('25 samples');
  });

  it('says so when the collector is gone, and keeps the picture', async () => {
    await push(TEXT);
    await open();
    await untilBoxes(15);
    await collector.stop();
    await page.getByText('The collector does not answer').waitFor();
    expect(await boxes()).toBe(15);
    // The browser itself reports the failed requests.
    problems = problems.filter((problem) => !problem.includes('ERR_CONNECTION_REFUSED'));
  });
});
