import { expect, it } from 'vitest';
import { readProfile } from '../../common/profile/formats/formats.ts';
import { type Recorded, recordSummary } from './record-summary.ts';

const recorded = (folded: string, changes: Partial<Recorded> = {}): string[] =>
  recordSummary({
    profile: readProfile('a.folded', Buffer.from(folded)),
    ...{ output: 'out.pb.gz', seconds: 10, counters: {}, isChosen: false, isViewed: false },
    ...changes,
  });

it('says what is in the file, and what to do next', () => {
  expect(recorded('a;main 1200\nb;main 34\n')).toEqual([
    '1,234 samples of 2 processes in 10.0 s, written to out.pb.gz',
    'next: everyframe view out.pb.gz, or everyframe report out.pb.gz --by function',
  ]);
  expect(recorded('a 1\n', { output: "it's.folded" })[1]).toContain("everyframe view 'it'\\''s.folded'");
  expect(recorded('a 1\n', { output: 'a.svg' })[1]).toBe('open a.svg in a browser');
  expect(recorded('a 1\n', { isViewed: true })[1]).toBe('next: everyframe report out.pb.gz --by function');
});

it('counts a process once, whatever labels its threads have', () => {
  const profile = readProfile('a.folded', Buffer.from('a;main 1\na;other 1\n'));
  const [sample, other] = profile.samples;
  other!.process =
    profile.processes.push({ ...profile.processes[sample!.process]!, attributes: '["a","b"]' }) - 1;
  expect(recorded('', { profile })[0]).toContain('2 samples of 1 process in');
});

it('counts a process once, whatever programs it executed', () => {
  const profile = readProfile('a.folded', Buffer.from('sh 1\nmake 1\n'));
  for (const process of profile.processes) Object.assign(process, { pid: 7, startUnixNano: 5n });
  expect(recorded('', { profile })[0]).toContain('2 samples of 1 process in');
});

it('says what was sampled beside CPU time', () => {
  const profile = readProfile('a.folded', Buffer.from('a 2500000000\n'));
  profile.type = {
    ...profile.type,
    sampleType: { type: 'off_cpu', unit: 'nanoseconds' },
  };
  expect(recorded('a 3\n', { others: [profile] })[0]).toBe(
    '3 samples, 2.5 s of waiting of 1 process in 10.0 s, written to out.pb.gz',
  );
  expect(recorded('', { profile })[0]).toMatch(/^2.5 s of waiting of 1 process/);
});

it('says that nothing is in use in the end of what was allocated', () => {
  const ofType = (type: string, folded: string) => {
    const profile = readProfile('a.folded', Buffer.from(folded));
    profile.type = { ...profile.type, sampleType: { type, unit: 'bytes' } };
    return profile;
  };
  const others = [ofType('alloc_space', 'a 2097152\n')];
  const told = recorded('', { profile: ofType('inuse_space', ''), others });
  expect(told[0]).toMatch(/^0 bytes of inuse_space, 2 MiB of alloc_space of \d process/);
  expect(told[1]).toMatch(/^next: /);
});

it('adds up the values of events, which are not their number', () => {
  const profile = readProfile('a.folded', Buffer.from('a 1549\n'));
  const text = 'usdt:python3:python:gc__done,value=arg0';
  profile.type = { ...profile.type, sampleType: { type: text, unit: 'count' } };
  expect(
    recorded('', { profile, events: [{ spec: { text }, events: 62, samples: 62 }] }).slice(0, 2),
  ).toEqual([
    `1,549 of ${text} of 1 process in 10.0 s, written to out.pb.gz`,
    `${text}: 62 events, the stacks of all of them`,
  ]);
});

it('says what was lost, and what is incomplete', () => {
  const lines = recorded('a;main 90\na;[cut: deeper than the limit];f 10\n', {
    counters: { 'bpf.samples_lost_ring': 100 },
  });
  expect(lines[1]).toMatch(/^100 samples \(50%\) were lost/);
  expect(lines[2]).toMatch(/^10% of the stacks are incomplete/);
});

it('says why there may be nothing', () => {
  expect(recorded('', { isChosen: true })).toEqual([expect.stringMatching(/chosen processes used no CPU/)]);
  expect(recorded('')).toEqual([expect.stringMatching(/no CPU was busy/)]);
});

it('counts what was lost against samples, not against what they add up to', () => {
  const profile = readProfile('a.folded', Buffer.from('a 2500000000\nb 2500000000\n'));
  profile.type = { ...profile.type, sampleType: { type: 'off_cpu', unit: 'nanoseconds' } };
  const counters = { 'bpf.samples_lost_ring': 5 };
  expect(recorded('', { profile, counters })[1]).toMatch(/^5 samples \(71.4%\) were lost/);
  expect(recorded('a 3\n', { others: [profile], counters })[1]).toMatch(/^5 samples \(50%\) were lost/);
});

it.each([
  ['waits', true, 'no samples in out.pb.gz: no chosen process waited. Record for longer'],
  ['locks', true, 'no samples in out.pb.gz: no chosen process waited for a lock. Record for longer'],
  ['locks', false, 'no samples in out.pb.gz: no process waited for a lock. Record for longer'],
] as const)('says that nothing waited where %s alone were asked for', (waits, isChosen, said) => {
  expect(recorded('', { waits, isChosen })).toEqual([said]);
});
