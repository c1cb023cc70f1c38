import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-view-'));
afterAll(() => rmSync(folder, { recursive: true }));
const profile = join(folder, 'a.folded');
writeFileSync(profile, 'app;main 5\n');

/** What it says where it does not serve. */
const refusal = (...flags: string[]): Promise<string> =>
  new Promise((resolve) => {
    let said = '';
    // knip takes a path in one piece for an import
    const child = spawn(['bin', 'everyframe'].join('/'), ['view', profile, '--no-browser', ...flags]);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.once('close', (code) => resolve(`${code} ${said}`));
  });

it('says in terms of its own flags where it can not listen', async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  try {
    expect(await refusal('--listen', `127.0.0.1:${port}`)).toBe(
      `1 everyframe: port ${port} for the page is taken by another program: stop that one, or choose another port, such as --listen 127.0.0.1:${port + 1}\n`,
    );
  } finally {
    server.close();
  }
  expect(await refusal('--listen', 'foo')).toMatch(/^1 everyframe: --listen: "foo" is not an address/);
  expect(await refusal('--listen', '0.0.0.0:0')).toMatch(
    /^1 everyframe: --listen 0\.0\.0\.0:0 is beyond this machine: view serves this machine alone/,
  );
});
