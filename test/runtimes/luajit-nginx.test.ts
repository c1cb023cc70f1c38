/** nginx with OpenResty's LuaJIT under requests, each of which is a coroutine. In the whole matrix only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';
import { fetchPackages, inRoot, isWholeMatrix, ROOTS } from './package-roots.ts';

const SAMPLES = 60;

/** Some of the functions of a stack, leaf first, in their order. */
const follows =
  (chain: readonly string[]) =>
  ({ frames }: Stack): boolean => {
    let at = -1;
    return chain.every((name) => {
      at = frames.indexOf(name, at + 1);
      return at >= 0;
    });
  };

const root =
  missingRights || !isWholeMatrix
    ? undefined
    : fetchPackages(join(ROOTS, 'luajit-nginx'), 'bookworm', ['nginx', 'libnginx-mod-http-lua']);
if (!isWholeMatrix) console.log('skipped: nginx with Lua, only `npm run test:runtimes` fetches it');

describe.skipIf(root === undefined)('nginx with Lua', () => {
  let server: ChildProcess;
  let recording: Recording;
  let isOver = false;
  const isOfLua = ({ frames }: Stack): boolean => frames.includes('ngx_http_lua_run_thread');

  beforeAll(async () => {
    cpSync(join(import.meta.dirname, 'luajit/web'), join(root!, 'tmp/web'), { recursive: true });
    for (const folder of ['var/log/nginx', 'var/lib/nginx'])
      mkdirSync(join(root!, folder), { recursive: true });
    writeFileSync(join(root!, 'dev/null'), '');
    writeFileSync(join(root!, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
    writeFileSync(join(root!, 'etc/group'), 'root:x:0:\n');
    const [program, ...args] = inRoot(root!, '/usr/sbin/nginx').command;
    server = spawn(program, [...args, '-c', '/tmp/web/nginx.conf'], { stdio: 'inherit' });
    recording = await Recording.start({ samplesPerSecond: 199 });
    for (const path of ['shop', 'page', 'page']) void ask(path);
    await recording.until((stacks) => total(stacks.filter(follows(['render', 'handle', '(main)']))) > 0);
    recording.clear();
    await recording.until((stacks) => total(stacks.filter(isOfLua)) >= 5 * SAMPLES);
  }, 120_000);

  afterAll(async () => {
    isOver = true;
    server?.kill('SIGTERM');
    await recording?.stop();
  });

  async function ask(path: string): Promise<void> {
    while (!isOver)
      await fetch(`http://127.0.0.1:18997/${path}`)
        .then((answer) => answer.text())
        .catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
  }

  it.each([
    [['table.sort', 'render', 'handle', '(main)', 'ngx_http_lua_run_thread', 'main']],
    [['double', 'gsub', 'decorate', '(main)', 'ngx_http_lua_run_thread', 'main']],
  ])('shows %j', (chain) => {
    const stacks = recording.stacks().filter(isOfLua);
    expect(total(stacks.filter(follows(chain)))).toBeGreaterThan(0);
    const [first] = chain;
    const own = stacks.filter(({ frames }) => frames.includes(first!));
    expect(share(own, follows(chain))).toBeGreaterThan(0.97);
  });

  it('shows what each sample executes', () => {
    const stacks = recording.stacks().filter(isOfLua);
    expect(share(stacks, ({ frames }) => frames.includes('(main)'))).toBeGreaterThan(0.8);
  });
});
