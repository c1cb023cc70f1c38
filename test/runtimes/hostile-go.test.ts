/** Programs in Go whose labels lie: they stay bounded, are counted, and their stacks are whole. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { stackNames } from '../../common/profile/model/frame-name.ts';
import { PROGRAM_LABEL } from '../../common/profile/model/sample-attributes.ts';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import { findGos } from './gos.ts';

const SAMPLES = 20;
const MODES = {
  slice: ['plain', 'null', 'nowhere', 'kernel', 'endless', 'long', 'bytes', 'many', 'changing', 'unread'],
  map: ['plain', 'null', 'nowhere', 'circle', 'endless', 'bits', 'moved'],
} as const;
type Layout = keyof typeof MODES;

const layoutOf = (version: string): Layout => (Number(version.split('.')[1]) >= 24 ? 'slice' : 'map');
eachOf(findGos)('labels that lie in $title', (go) => {
  const layout = layoutOf(go.build.version);
  const programs = new Map<string, ChildProcess>();
  let recording: Recording;

  /** Labels of the samples with main.spin, each set once, as a receiver of OTLP has them. */
  function setsOf(mode: string): Record<string, string>[] {
    const { pid } = programs.get(mode)!;
    const sets = new Set<string>();
    for (const profile of recording.profiles.flatMap((one) => received(one)))
      for (const { process, stack } of profile.samples) {
        const { pid: own, attributes = '' } = profile.processes[process]!;
        if (own === pid && stackNames(profile, stack).includes('main.spin')) sets.add(attributes);
      }
    return [...sets].map((text) =>
      Object.fromEntries(
        [...readAttributes(text)]
          .filter(([key]) => key.startsWith(PROGRAM_LABEL))
          .map(([key, value]) => [key.slice(PROGRAM_LABEL.length), value]),
      ),
    );
  }
  const received = (profile: (typeof recording.profiles)[number]) =>
    decodeOtlp(encodeOtlp([profile], { scopeName: 'test', scopeVersion: '0' })).profiles;
  const counter = (name: string): number => recording.controller.counters()[`bpf.${name}`]!;

  beforeAll(async () => {
    const path = go.compile('lies.go');
    for (const mode of MODES[layout])
      programs.set(mode, spawn('nice', [path, layout, mode], { stdio: ['ignore', 'ignore', 'inherit'] }));
    recording = await Recording.start({ targets: [...programs.values()].map(({ pid }) => toPid(pid!)) });
    const spins = (mode: string): number =>
      recording
        .stacks(programs.get(mode)!.pid!)
        .filter(({ frames }) => frames.includes('main.spin') && /^runtime\.goexit/.test(frames.at(-1)!))
        .length;
    const isNamed = (): boolean => setsOf('plain').some(({ who }) => who === 'plain');
    await recording.until(() => isNamed() && MODES[layout].every((mode) => spins(mode) > 0));
    recording.clear();
    await recording.until(() => MODES[layout].every((mode) => spins(mode) >= SAMPLES));
  }, 200_000);

  afterAll(async () => {
    for (const child of programs.values()) child.kill('SIGKILL');
    await recording?.stop();
  });

  it('are none where nothing can be read', () => {
    for (const mode of ['null', 'nowhere', ...(layout === 'slice' ? ['kernel'] : ['bits'])])
      expect(setsOf(mode), mode).toEqual([{}]);
    expect(counter('labels_read_failed')).toBeGreaterThan(0);
    if (layout === 'map') expect(counter('go_bad_labels')).toBeGreaterThan(0);
  });

  it('are few where they have no end', () => {
    for (const set of setsOf('endless')) expect(Object.keys(set).length).toBeLessThanOrEqual(64);
    expect(counter('labels_left_out')).toBeGreaterThan(0);
  });

  it.runIf(layout === 'slice')('are cut where they are long', () => {
    const [{ who, value = '', ...others }] = setsOf('long') as [Record<string, string>];
    expect({ who, ...others }).toEqual({ who: 'long' });
    expect(value.length).toBeLessThanOrEqual(257);
    expect(value).toMatch(/…$/);
    const [many] = setsOf('many') as [Record<string, string>];
    expect(many['who']).toBe('many');
    expect(Object.keys(many).length).toBeGreaterThan(1);
    expect(JSON.stringify(many).length).toBeLessThan(1200);
    expect(counter('labels_cut')).toBeGreaterThan(0);
  });

  it.runIf(layout === 'slice')('may be any bytes', () => {
    const [set] = setsOf('bytes') as [Record<string, string>];
    expect(Object.keys(set)).toContain('\ufffd\0\n"');
    for (const changing of setsOf('changing')) expect(JSON.stringify(changing).length).toBeLessThan(3000);
  });

  it.runIf(layout === 'slice')('are read by the thread itself where a text is not in memory', ({ skip }) => {
    if (recording.controller.counters()['samplers.deferring'] === 0) skip('Linux before 6.18');
    expect(setsOf('unread')).toContainEqual({ who: 'unread', value: '\x7fELF' });
  });

  it.runIf(layout === 'map')('are read once where buckets go round in circles or were moved', () => {
    expect(setsOf('circle')).toEqual([{ who: 'circle' }]);
    expect(setsOf('moved')).toEqual([{ who: 'moved' }]);
  });
});
