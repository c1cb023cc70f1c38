import { expect, it } from 'vitest';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { THREAD_STATES } from '../../common/profile/model/thread-types.ts';
import { Origin, SAMPLE, ThreadState, WAIT } from '../records/records.gen.ts';
import { attributesOfWait, isWait } from './waits.ts';

function wait(state: number, wakerTgid: number): Buffer {
  const buffer = Buffer.alloc(WAIT.bytes);
  buffer.writeUInt16LE(Origin.OFF_CPU, SAMPLE.origin);
  buffer.writeUInt32LE(7, SAMPLE.processTgid);
  buffer.writeUInt32LE(state, WAIT.state);
  buffer.writeUInt32LE(wakerTgid, WAIT.wakerTgid);
  buffer.write('holder', WAIT.wakerComm);
  return buffer;
}

const said = (state: number, wakerTgid: number): Record<string, string> =>
  Object.fromEntries(readAttributes(attributesOfWait(wait(state, wakerTgid), 0)));

it('every state has its own name', () => {
  const names = Object.entries(ThreadState).map(([key, i]) => [
    key,
    THREAD_STATES[i]?.replace('blocked:', ''),
  ]);
  expect(names).toEqual(Object.keys(ThreadState).map((key) => [key, key.toLowerCase().replace('_', '-')]));
});

it('a wait says what it was for, and who has ended it', () => {
  expect(said(ThreadState.SLEEP, 0)).toEqual({ 'thread.state': 'blocked:sleep' });
  expect(said(ThreadState.LOCK, 7)).toEqual({ 'thread.state': 'blocked:lock', 'thread.waker': 'holder' });
  expect(said(ThreadState.LOCK, 8)).toMatchObject({ 'thread.waker': 'holder/8' });
  expect(said(ThreadState.NETWORK, 8)).toMatchObject({ 'thread.waker': 'holder' });
});

it('a state that is unknown is left out, and a short record is not a wait', () => {
  expect(said(99, 0)).toEqual({});
  const buffer = wait(ThreadState.LOCK, 0);
  expect([isWait(buffer, 0, WAIT.bytes), isWait(buffer, 0, SAMPLE.bytes)]).toEqual([true, false]);
});
