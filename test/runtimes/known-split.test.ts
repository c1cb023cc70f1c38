import { describe, expect, it } from 'vitest';
import type { Profile } from '../../common/profile/model/profile.ts';
import { ProfileBuilder } from '../../common/profile/model/profile-builder.ts';
import { Windows } from './known-split.ts';

const SECOND = 1_000_000_000n;
const OWNER = { process: 'node', pid: 7, tid: 7, thread: 'node' };

/** A sample of one process at each of these seconds, in a function of this name. */
function profileOf(name: string, seconds: number[]): Profile {
  const builder = new ProfileBuilder();
  const stack = builder.stack([builder.location({ name, frameType: 'v8js' })]);
  for (const at of seconds) builder.add(stack, OWNER, 1, [BigInt(at) * SECOND]);
  return builder.profile;
}

describe('windows of a split', () => {
  it('begin at the first sample where nothing else is said, and the last is not over', () => {
    const windows = new Windows();
    windows.add(profileOf('a', [103, 104, 112]), 7, 'v8js');
    windows.add(profileOf('b', [107]), 7, 'v8js');
    expect(windows.whole(1)).toEqual([{ a: 2, b: 1 }]);
    expect(windows.sum).toEqual({ a: 3, b: 1 });
  });

  it('begin with a span, keep their places, and leave out what came before and after', () => {
    const span = { from: 100n * SECOND, to: 115n * SECOND };
    const windows = new Windows(span);
    windows.add(profileOf('a', [99, 103, 115]), 7, 'v8js');
    windows.add(profileOf('b', [114]), 7, 'v8js');
    windows.add(profileOf('other', [101]), 7, 'v8js');
    windows.add(profileOf('a', [101]), 8, 'v8js');
    expect(windows.inSpan(span)).toEqual([{ a: 1, b: 0 }, undefined, { a: 0, b: 1 }]);
    expect(windows.samples).toBe(3);
  });

  it.each([
    ['Split.a', 'Split.b'],
    ['void Split.a(double)', 'double Split.b(java.lang.String[])'],
    ['Split.Machines.a', 'Split/Machines/<b>d__1.MoveNext'],
    ['Object#a', 'main::b'],
    ['split:a/1', 'b'],
  ])('know the two as runtimes and profilers call them: %s, %s', (a, b) => {
    const windows = new Windows();
    windows.add(profileOf(a, [101, 102]), 7, 'v8js');
    windows.add(profileOf(b, [101]), 7, 'v8js');
    expect(windows.sum).toEqual({ a: 2, b: 1 });
  });

  it('of a function that shows nothing of the two have none', () => {
    const windows = new Windows();
    windows.add(profileOf('both', [101]), 7, 'v8js');
    expect([windows.hasAny, windows.samples]).toEqual([false, 1]);
  });
});
