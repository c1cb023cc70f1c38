import { describe, expect, it } from 'vitest';
import type { Native, NativeBpfObject } from '../base/native.ts';
import { RUNTIMES } from '../runtimes/runtimes.gen.ts';
import type { SamplerPart } from './sampler-part.ts';
import { Samplers } from './samplers.ts';

const [first, second, third] = RUNTIMES.slice() as SamplerPart[] as [SamplerPart, SamplerPart, SamplerPart];

/** What the kernel was asked for, in order, as text; loading takes a turn of the event loop. */
function fakeKernel(refuse: (runtimes: string) => boolean = () => false) {
  const log: string[] = [];
  const warnings: string[] = [];
  const open = (runtimes: readonly SamplerPart[], share: NativeBpfObject): NativeBpfObject => {
    const name = `[${runtimes.map((plugin) => plugin.name).join(' ')}]`;
    log.push(`open ${name} sharing with ${share.mapFd('its name')}`);
    const load = (): void => {
      if (refuse(name)) throw new Error('E2BIG');
      log.push(`load ${name}`);
    };
    return {
      load: async () => {
        await new Promise(setImmediate);
        load();
      },
      loadSync: load,
      mapFd: () => name as unknown as number,
      programFd: () => runtimes.length,
      attachRawTracepoint: () => {},
      attach: () => {},
      attachUprobe: () => {},
      attachUprobes: () => {},
      detach: () => {},
      askForStats: () => {},
      verifierStats: () => ({}),
      close: () => void log.push(`close ${name}`),
    };
  };
  const base = { ...open([], { mapFd: () => 0 } as unknown as NativeBpfObject), mapFd: () => 7 };
  log.length = 0;
  const native = {
    mapUpdate: (fd: number, key: Buffer, value: Buffer) =>
      void log.push(`slot ${key.readUInt32LE(0)} of map ${fd} = sampler ${value.readUInt32LE(0)}`),
  } as unknown as Native;
  const openDeferring = (runtimes: readonly SamplerPart[], share: NativeBpfObject): NativeBpfObject => {
    const name = `deferring [${runtimes.map((plugin) => plugin.name).join(' ')}]`;
    log.push(`open ${name} sharing with ${share.mapFd('its name')}`);
    return {
      ...open(runtimes, share),
      load: async () => {
        if (refuse(name)) throw new Error('ENOTSUP');
        log.push(`load ${name}`);
      },
      programFd: () => 100 + runtimes.length,
      close: () => void log.push(`close ${name}`),
    };
  };
  const samplers = new Samplers(native, base, { open, openDeferring }, (what, error) =>
    warnings.push(`${what}: ${error.message}`),
  );
  return { samplers, log, warnings };
}

describe('the samplers', () => {
  it('begin without a runtime', () => {
    const { samplers, log } = fakeKernel();
    expect(log).toEqual(['open [] sharing with 7', 'load []', 'slot 0 of map 7 = sampler 0']);
    expect(samplers.mapFd(first)).toBeUndefined();
  });

  it('let the next one take over before the last one goes', async () => {
    const { samplers, log } = fakeKernel();
    log.length = 0;
    expect(await samplers.add(first)).toBe(true);
    expect(log).toEqual([
      `open [${first.name}] sharing with []`,
      `load [${first.name}]`,
      'slot 0 of map 7 = sampler 1',
      'close []',
    ]);
    expect(samplers.mapFd(first)).toBe(`[${first.name}]`);
    expect(samplers.mapFd(second)).toBeUndefined();
  });

  it('load a runtime once, and those together that are asked for meanwhile', async () => {
    const { samplers, log } = fakeKernel();
    log.length = 0;
    const added = [samplers.add(first)];
    while (!log.some((line) => line.startsWith('open'))) await Promise.resolve();
    added.push(...[second, third, first, second].map((plugin) => samplers.add(plugin)));
    expect(await Promise.all(added)).toEqual(Array(5).fill(true));
    expect(log.filter((line) => line.startsWith('load'))).toEqual([
      `load [${first.name}]`,
      `load [${first.name} ${second.name} ${third.name}]`,
    ]);
    expect(samplers.stats.runtimes).toBe(3);
  });

  it('wait for others where they are told to', async () => {
    const { samplers, log } = fakeKernel();
    log.length = 0;
    let go = (): void => {};
    const gathered = samplers.gather(new Promise<void>((resolve) => (go = resolve)));
    const added = [samplers.add(first)];
    await new Promise(setImmediate);
    added.push(samplers.add(second));
    expect(log).toEqual([]);
    go();
    await gathered;
    expect(await Promise.all(added)).toEqual([true, true]);
    expect(log.filter((line) => line.startsWith('load'))).toEqual([`load [${first.name} ${second.name}]`]);
  });

  it('take of those that come together the ones that the kernel takes', async () => {
    const { samplers, log, warnings } = fakeKernel((runtimes) => runtimes.includes(second.name));
    log.length = 0;
    const added = await Promise.all([first, second, third].map((plugin) => samplers.add(plugin)));
    expect(added).toEqual([true, false, true]);
    expect(warnings).toEqual([`frames of ${second.name} will be missing from samples: E2BIG`]);
    expect(samplers.stats).toEqual({ runtimes: 2, refused: 1, deferring: 0 });
    expect(samplers.mapFd(third)).toBe(`[${first.name} ${third.name}]`);
  });

  it('stay as they are where the kernel refuses a runtime, and ask once', async () => {
    const { samplers, log, warnings } = fakeKernel((runtimes) => runtimes.includes(first.name));
    log.length = 0;
    expect(await samplers.add(first)).toBe(false);
    expect(await samplers.add(first)).toBe(false);
    expect(log).toEqual([`open [${first.name}] sharing with []`, `close [${first.name}]`]);
    expect(warnings).toEqual([`frames of ${first.name} will be missing from samples: E2BIG`]);
    expect(await samplers.add(second)).toBe(true);
    expect(samplers.mapFd(first)).toBeUndefined();
    expect(samplers.stats).toEqual({ runtimes: 1, refused: 1, deferring: 0 });
  });

  it('put stacks off once they are asked to, with the runtimes that they have, then and later', async () => {
    const { samplers, log } = fakeKernel();
    await samplers.add(first);
    log.length = 0;
    await Promise.all([samplers.deferStacks(), samplers.deferStacks()]);
    expect(log.filter((line) => /deferring|^slot/.test(line))).toEqual([
      `open deferring [${first.name}] sharing with [${first.name}]`,
      `load deferring [${first.name}]`,
      'slot 1 of map 7 = sampler 101',
    ]);
    expect(samplers.mayDefer).toBe(false);
    log.length = 0;
    await samplers.add(second);
    const both = `[${first.name} ${second.name}]`;
    expect(log.filter((line) => /deferring|^slot|^close/.test(line))).toEqual([
      'slot 0 of map 7 = sampler 2',
      `open deferring ${both} sharing with ${both}`,
      `load deferring ${both}`,
      'slot 1 of map 7 = sampler 102',
      `close [${first.name}]`,
    ]);
    log.length = 0;
    await samplers.close();
    expect(log).toEqual([`close ${both}`, `close deferring [${first.name}]`, `close deferring ${both}`]);
  });

  it('take those along that follow, before their old maps go', async () => {
    const { samplers, log, warnings } = fakeKernel();
    const names = (runtimes: readonly SamplerPart[]): string => runtimes.map(({ name }) => name).join(' ');
    await samplers.addFollower({
      follow: async (runtimes, share) => {
        log.push(`follower [${names(runtimes)}] sharing with ${share.mapFd('its name')}`);
        if (runtimes.includes(second)) throw new Error('E2BIG');
      },
    });
    await samplers.add(first);
    await samplers.add(second);
    expect(log.filter((line) => /^follower|^close/.test(line))).toEqual([
      'follower [] sharing with []',
      `follower [${first.name}] sharing with [${first.name}]`,
      'close []',
      `follower [${first.name} ${second.name}] sharing with [${first.name} ${second.name}]`,
      `close [${first.name}]`,
    ]);
    expect(warnings).toEqual([
      `frames of ${second.name} will be missing from samples of other events: E2BIG`,
    ]);
  });

  it('tell whoever wants to follow why it can not', async () => {
    const { samplers } = fakeKernel();
    const refused = samplers.addFollower({ follow: () => Promise.reject(new Error('EPERM')) });
    await expect(refused).rejects.toThrow('EPERM');
    expect(await samplers.add(first)).toBe(true);
  });

  it('ask once where the kernel refuses to put stacks off', async () => {
    const { samplers, log, warnings } = fakeKernel((name) => name.startsWith('deferring'));
    await samplers.deferStacks();
    expect(samplers.mayDefer).toBe(false);
    log.length = 0;
    await samplers.deferStacks();
    expect(log).toEqual([]);
    expect(warnings).toEqual(['stacks will be cut where their memory is not resident: ENOTSUP']);
  });

  it('have no maps any more for a runtime that was on its way as they were closed', async () => {
    const { samplers, log } = fakeKernel();
    const found = samplers.add(first).then((isAdded) => isAdded && samplers.mapFd(first));
    while (!log.includes(`open [${first.name}] sharing with []`)) await Promise.resolve();
    await samplers.close();
    expect(log.at(-1)).toBe(`close [${first.name}]`);
    expect(await found).toBe(false);
    expect(samplers.mapFd(first)).toBeUndefined();
  });

  it('end after a change that is under way, and take no other', async () => {
    const { samplers, log } = fakeKernel();
    const [change, closed] = [samplers.add(first), samplers.close()];
    expect(await samplers.add(second)).toBe(false);
    await closed;
    await change;
    expect(log.filter((line) => line.startsWith('close')).sort()).toEqual(
      log
        .filter((line) => line.startsWith('load'))
        .map((line) => line.replace('load', 'close'))
        .sort(),
    );
  });
});
