import { describe, expect, it } from 'vitest';
import { ALL_RUNTIMES, isMine, RUNTIMES, type Runtime, readRuntimes } from './my-code.ts';

/** `kind name file|mapping`: native frames have a binary, others a source file. */
const frame = (text: string) => {
  const [kind, name, place = ''] = text.split(' ');
  const isNative = kind === 'native' || kind === 'kernel';
  return { kind: kind!, name: name!, file: isNative ? '' : place, mapping: isNative ? place : '' };
};

/** `name file`, of native code in the program's own file. */
const own = (text: string) => {
  const [name, file = ''] = text.split(' ');
  return { kind: 'native', name: name!, file, mapping: '/srv/app/app' };
};

const LIBRARY: Record<Runtime, readonly string[]> = {
  node: [
    'v8js emit node:events',
    'v8js route /srv/app/node_modules/express/lib/router.js',
    'native Run /opt/node/bin/node',
  ],
  python: [
    'cpython loads /usr/lib/python3.11/json/__init__.py',
    'cpython get /srv/venv/lib/python3.12/site-packages/requests/api.py',
    'cpython _call <frozen importlib._bootstrap>',
    'native _PyEval_EvalFrameDefault /opt/py/lib/libpython3.12.so.1.0',
  ],
  jvm: [
    'jvm java.util.HashMap.put HashMap.java',
    'jvm kotlin.Unit.x Unit.kt',
    'native JavaMain /opt/jdk/lib/server/libjvm.so',
  ],
  go: [
    'go runtime.mallocgc /usr/local/go/src/runtime/malloc.go',
    'go github.com/x/y.Do /root/go/pkg/mod/github.com/x/y@v1/do.go',
  ],
  ruby: [
    'ruby each <internal:array>',
    'ruby call /usr/lib/ruby/3.1.0/set.rb',
    'ruby call /srv/gems/rack-3/lib/rack.rb',
  ],
  php: ['php handle /srv/app/vendor/laravel/kernel.php', 'native zend /opt/php/sbin/php-fpm8.2'],
  perl: [
    'perl get /usr/share/perl5/LWP.pm',
    'perl run /usr/local/share/perl/5.36.0/X.pm',
    'perl first /usr/lib/x86_64-linux-gnu/perl-base/List/Util.pm',
  ],
  dotnet: ['dotnet System.String.Concat ', 'native JIT_New /srv/x/libcoreclr.so'],
  beam: [
    'beam lists:map/2 lists.erl',
    'beam Elixir.Enum.map/2 enum.ex',
    'beam f /srv/app/deps/plug/lib/plug.ex',
  ],
  lua: ['luajit new /usr/local/share/lua/5.1/pl/List.lua'],
  native: [
    'kernel vfs_write vmlinux',
    'native malloc /usr/lib/x86_64-linux-gnu/libc.so.6',
    'native malloc libc.so.6',
    'native grep /usr/bin/grep',
    'native x [vdso]',
    'native dot /srv/venv/lib/python3.12/site-packages/numpy/core/_multiarray.so',
    'abort-marker [cut]',
  ],
};

const OWN = [
  'v8js handle /srv/app/server.js',
  'cpython main /srv/app/main.py',
  'cpython f /srv/python3/app.py',
  'jvm com.example.Main.run Main.java',
  'go main.work /srv/app/main.go',
  'go example.org/x.Handle /srv/x/x.go',
  'ruby run /srv/app/app.rb',
  'php run /srv/app/index.php',
  'perl run /srv/app/run.pl',
  'dotnet Shop.Cart.Add ',
  'beam Elixir.Shop.Cart.add/1 lib/shop/cart.ex',
  'luajit run /srv/app/run.lua',
  'native work /opt/own/own',
  'native work /opt/own/lib/libown.so',
  'native work ',
  ' main ',
];

describe('my code', () => {
  it('goes by the package in Go, wherever the program is installed and with or without files', () => {
    const go = (name: string, file = ''): boolean =>
      isMine({ kind: 'go', name, file, mapping: '/usr/bin/tool' }, ALL_RUNTIMES);
    expect([go('main.work', '/build/main.go'), go('main.work'), go('example.org/x.Handle')]).toEqual([
      true,
      true,
      true,
    ]);
    expect([go('plugin/unnamed-5ffee6857ba9.Spin'), go('plugin.Open')]).toEqual([true, false]);
    expect([go('runtime.mallocgc'), go('net/http.(*conn).serve'), go('memeqbody'), go('gogo')]).toEqual(
      Array(4).fill(false),
    );
  });

  it('of Elixir is told by the function in which one without a name stands', () => {
    const isOwn = (name: string): boolean =>
      isMine({ kind: 'beam', name, file: 'lib/x.ex', mapping: '' }, ALL_RUNTIMES);
    expect(isOwn('anonymous fn/3 in Enum.reduce/3')).toBe(false);
    expect(isOwn('anonymous fn/1 in Shop.Cart.total/1')).toBe(true);
  });

  // names and files as the agent gives them for Go 1.25, with and without -trimpath, and for static C programs
  it.each([
    'runtime.mallocgc /usr/local/go/src/runtime/malloc.go',
    'runtime.goexit /usr/lib/go-1.19/src/runtime/asm_amd64.s',
    'cmpbody internal/bytealg/compare_amd64.s',
    'gcWriteBarrier /opt/go1.25/src/runtime/asm_amd64.s',
    'slices.pdqsortOrdered[go.shape.string] slices/zsortordered.go',
    'net/http.(*conn).serve /home/me/sdk/go1.24.1/src/net/http/server.go',
    'github.com/x/y.Do github.com/x/y@v1.2.3/do.go',
    'github.com/x/y.Do /root/go/pkg/mod/github.com/x/y@v1.2.3/do.go',
    'type:.eq.main.key /usr/local/go/src/runtime/alg.go',
    '_start',
    '__libc_start_main',
    '__libc_start_call_main',
    '__libc_start_main_impl',
    '__libc_csu_init',
    'start_thread',
    '__clone3',
    '_start_c crt/crt1.c',
    'libc_start_main_stage2 src/env/__libc_start_main.c',
  ])('is without %s, although the program holds it', (text) => {
    expect(isMine(own(text), ALL_RUNTIMES)).toBe(false);
  });

  it.each([
    'main.work /srv/app/main.go',
    'example.org/shop/cart.Add /srv/app/cart/cart.go',
    'main',
    'spin',
    'sort.part.0',
    'time.constprop.0 /srv/app/time.c',
    'start_threads',
    'clone_tree',
    '_startle',
    'mix /srv/app/mix.s',
    'asm_add /srv/app/runtime/add.s',
  ])('is %s', (text) => {
    expect(isMine(own(text), ALL_RUNTIMES)).toBe(true);
  });

  it.each(RUNTIMES)('of %s is without its libraries, and theirs alone', (runtime) => {
    for (const text of LIBRARY[runtime]) {
      expect(isMine(frame(text), ALL_RUNTIMES), text).toBe(false);
      expect(isMine(frame(text), new Set([runtime])), text).toBe(false);
    }
    for (const other of RUNTIMES.filter((each) => each !== runtime && each !== 'native')) {
      for (const text of LIBRARY[other]) {
        // what a runtime is made of is native as well
        const expected = runtime !== 'native' || !text.startsWith('native ');
        expect(isMine(frame(text), new Set([runtime])), text).toBe(expected);
      }
    }
  });

  it('is what no rule knows', () => {
    for (const text of OWN) expect(isMine(frame(text), ALL_RUNTIMES), text).toBe(true);
  });

  it('is asked for by name', () => {
    expect(readRuntimes(['mine'])).toBe(ALL_RUNTIMES);
    expect(readRuntimes(['python', 'node'])).toEqual(new Set(['node', 'python']));
    for (const wrong of [[], ['mine', 'node'], ['python', 'cobol'], ['']])
      expect(readRuntimes(wrong)).toBeUndefined();
  });
});
