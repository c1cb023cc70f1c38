import { describe, expect, it } from 'vitest';
import type { NativeBpfObject } from '../base/native.ts';
import type { ProbeSite } from '../events/probe-site.ts';
import { attachSites } from './user-probes.ts';

/** Notes each call that was taken; refuses places below 0x10, as the kernel does with an errno. */
function fakeObject(errno = 22, code = 'EINVAL') {
  const attached: string[] = [];
  const attach = (program: string, path: string, offsets: readonly number[], isAtReturn: boolean): void => {
    if (offsets.some((offset) => offset < 0x10)) throw Object.assign(new Error('refused'), { errno, code });
    attached.push(`${program} ${isAtReturn ? 'return' : 'entry'} ${path} ${offsets}`);
  };
  const object = {
    attachUprobe: (program: string, path: string, offset: number, _: number, isAtReturn: boolean) =>
      attach(program, path, [offset], isAtReturn),
    attachUprobes(program: string, path: string, offsets: BigUint64Array, _: unknown, isAtReturn: boolean) {
      attach(program, path, [...offsets].map(Number), isAtReturn);
    },
  } as unknown as NativeBpfObject;
  return { object, attached };
}

const site = (offset: number, { path = '/a', program = 'on_probe', isAtReturn = false } = {}): ProbeSite => ({
  ...{ path, program, offset, isAtReturn },
  semaphore: 0,
});

describe('probes in user code', () => {
  it('have one link for each program, file and kind', () => {
    const { object, attached } = fakeObject();
    const sites = [
      site(16),
      site(17, { path: '/b' }),
      site(18),
      site(19, { isAtReturn: true }),
      site(20, { program: 'on_free' }),
    ];
    expect(attachSites(object, sites, true)).toEqual([]);
    expect(attached).toEqual([
      'on_probe entry /a 16,18',
      'on_probe entry /b 17',
      'on_probe return /a 19',
      'on_free entry /a 20',
    ]);
  });

  it('have a link each where the kernel has no such links', () => {
    const { object, attached } = fakeObject();
    expect(attachSites(object, [site(16), site(1), site(18)], false)).toEqual([
      { site: site(1), why: 'invalid argument' },
    ]);
    expect(attached).toEqual(['on_probe entry /a 16', 'on_probe entry /a 18']);
  });

  it('stand without those that the kernel refuses', () => {
    const { object, attached } = fakeObject(524, 'UNKNOWN');
    const sites = [16, 17, 1, 18, 19, 20, 21, 2].map((offset) => site(offset));
    const why = 'the kernel can run no such instruction apart';
    expect(attachSites(object, sites, true)).toEqual([
      { site: site(1), why },
      { site: site(2), why },
    ]);
    expect(attached).toEqual(['16,17', '18', '19,20', '21'].map((offsets) => `on_probe entry /a ${offsets}`));
  });

  it('stand without those of a file that has gone', () => {
    const { object, attached } = fakeObject(2, 'ENOENT');
    const gone = [site(1), site(16)];
    const why = 'no such file or directory';
    expect(attachSites(object, [...gone, site(17, { path: '/b' })], true)).toEqual(
      gone.map((site) => ({ site, why })),
    );
    expect(attached).toEqual(['on_probe entry /b 17']);
  });

  it('are not tried one by one where the kernel refuses them all', () => {
    const { object, attached } = fakeObject(24, 'EMFILE');
    for (const uprobeMulti of [true, false])
      expect(() => attachSites(object, [site(1), site(16)], uprobeMulti)).toThrow('refused');
    expect(attached).toEqual([]);
  });
});
