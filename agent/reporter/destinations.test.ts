import { afterEach, expect, it } from 'vitest';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { eventsIn, profileOf } from '../../test/fixtures/otlp-samples.ts';
import { ScriptedReceiver } from '../../test/fixtures/scripted-receiver.ts';
import { parseAgentOptions } from '../settings/options.ts';
import { Destinations } from './destinations.ts';
import { destinationOptions } from './options.ts';

const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const log = { info() {}, warn() {}, error() {} };
const open: { stop(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.stop();
});

async function receive() {
  const taken: number[] = [];
  const waiting: (() => void)[] = [];
  const state = { isStalled: false };
  const onCall = (call: { request: Buffer; ok(): void }): void => {
    const answer = (): void => {
      taken.push(...eventsIn(call.request));
      call.ok();
    };
    if (state.isStalled) waiting.push(answer);
    else answer();
  };
  const receiver = await ScriptedReceiver.start({ path: PATH, onCall });
  open.push(receiver);
  const resume = (): void => {
    state.isStalled = false;
    for (const answer of waiting.splice(0)) answer();
  };
  return { taken, state, resume, waiting, address: receiver.address };
}

const optionsFor = (...collectionAgent: string[]): [SenderOptions, ...SenderOptions[]] =>
  destinationOptions(parseAgentOptions({ collectionAgent, disableTls: true }), {});

it('sends all to each, and one that stalls holds up no other', async () => {
  const [slow, fast] = [await receive(), await receive()];
  slow.state.isStalled = true;
  const all = new Destinations(optionsFor(slow.address, fast.address), log);
  open.push({ stop: () => all.close() });
  for (let i = 0; i < 5; i++) await all.push(profileOf([[1, 1]]));
  await expect.poll(() => fast.taken.length).toBe(5);
  expect(slow.taken).toEqual([]);
  slow.resume();
  await expect.poll(() => slow.taken.length).toBe(5);
  // counted once the answer has come, after it was taken
  await expect.poll(() => all.stats()).toMatchObject({ samplesPushed: 10, samplesSent: 10 });
});

it('loses nothing when one is replaced: what waited goes where it was meant for', async () => {
  const [kept, old, next] = [await receive(), await receive(), await receive()];
  for (const each of [kept, old]) each.state.isStalled = true;
  const all = new Destinations(optionsFor(kept.address, old.address), log);
  open.push({ stop: () => all.close() });
  for (let i = 0; i < 3; i++) await all.push(profileOf([[1, 1]]));
  await expect.poll(() => kept.waiting.length + old.waiting.length).toBe(2);
  all.replace(optionsFor(next.address, kept.address));
  for (let i = 3; i < 6; i++) await all.push(profileOf([[1, 1]]));
  for (const each of [kept, old]) each.resume();
  await expect.poll(() => [kept, old, next].map(({ taken }) => taken.length)).toEqual([6, 3, 3]);
  await expect
    .poll(() => all.stats())
    .toMatchObject({ samplesPushed: 12, samplesSent: 12, samplesQueued: 0 });
});

it('sends what was still being encoded for one that is replaced', async () => {
  const [old, next] = [await receive(), await receive()];
  const all = new Destinations(optionsFor(old.address), log);
  open.push({ stop: () => all.close() });
  const pushing = all.push(profileOf(Array.from({ length: 50_000 }, () => [1, 1])));
  all.replace(optionsFor(next.address));
  await pushing;
  await expect.poll(() => all.stats()).toMatchObject({ samplesPushed: 50_000, samplesSent: 50_000 });
  expect(old.taken).toHaveLength(50_000);
});
