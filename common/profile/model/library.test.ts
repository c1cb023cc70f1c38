import { describe, expect, it } from 'vitest';
import type { FrameKind } from '../../flame/frame-kind.ts';
import { isStateName, libraryName } from './library.ts';

const of = (kind: FrameKind, name: string, file = '', mapping = ''): string =>
  libraryName({ kind, name, file, mapping });

describe('the library of a frame', () => {
  it('is its binary', () => {
    expect(of('native', 'malloc', '', '/usr/lib/x86_64-linux-gnu/libc.so.6')).toBe('libc.so.6');
    expect(of('native', 'f', '/srv/app/src/f.c')).toBe('src');
    expect(of('native', 'f')).toBe('unknown');
    expect(of('kernel', 'vfs_write', '', 'vmlinux')).toBe('vmlinux');
    expect(of('kernel', 'vfs_write')).toBe('kernel');
  });

  it('is a state of a thread where that stands in place of code', () => {
    expect(of('kernel', '[blocked:page-fault]')).toBe('[blocked:page-fault]');
    expect(of('kernel', '[runnable]', '', 'vmlinux')).toBe('vmlinux');
    expect(['[blocked:lock]', '[running]', '[vdso]', '[cut: x]', 'running'].map(isStateName)).toEqual([
      ...[true, true, false, false, false],
    ]);
  });

  it.each<[FrameKind, string, string, string]>([
    ['v8js', 'emit', 'node:events', 'node'],
    ['v8js', 'route', '/srv/node_modules/a/node_modules/@scope/b/lib/x.js', '@scope/b'],
    ['v8js', 'handle', '/srv/app/server.js', 'app'],
    ['cpython', 'get', '/srv/venv/lib/python3.12/site-packages/requests/api.py', 'requests'],
    ['cpython', 'six', '/srv/venv/lib/python3.12/site-packages/six.py', 'six'],
    ['cpython', 'loads', '/usr/lib/python3.11/json/__init__.py', 'python3.11'],
    ['cpython', 'main', 'main.py', 'main.py'],
    ['go', 'main.main', '', 'main'],
    ['go', 'net/http.(*conn).serve', '', 'net/http'],
    ['go', 'github.com/x/y.Map[github.com/a/b.T]', '', 'github.com/x/y'],
    ['jvm', 'java.util.HashMap.put', '', 'java.util'],
    ['jvm', 'com.example.shop.Cart.add', '', 'com.example'],
    ['jvm', 'Main.main', '', 'Main'],
    ['ruby', 'call', '/srv/gems/rack-3.0/lib/rack.rb', 'rack-3.0'],
    ['php', 'handle', '/srv/vendor/laravel/framework/x.php', 'laravel/framework'],
    ['process', 'sh', '', ''],
    ['abort-marker', '[cut]', '', ''],
  ])('%s %s of %s is of %s', (kind, name, file, expected) => {
    expect(of(kind, name, file)).toBe(expected);
  });
});
