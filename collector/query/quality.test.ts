import { expect, test } from 'vitest';
import { UNNAMED_REASONS, unnamedMarker } from '../../common/profile/model/unnamed-markers.ts';
import type { StackCounts } from '../store/store.ts';
import { QualityMeter } from './quality.ts';

test('functions of a runtime without a name are counted by the first reason of each stack', () => {
  const freed = unnamedMarker('cpython', UNNAMED_REASONS.replaced);
  const gone = unnamedMarker('v8', UNNAMED_REASONS.unreadable);
  const frame = (kind: string, name: string) => ({ kind, name }) as StackCounts['frames'][number];
  const part = {
    frames: [
      frame('process', 'app'),
      frame('cpython', freed),
      frame('v8js', gone),
      frame('native', 'main'),
      frame('native', '[vdso]'),
    ],
    // app: main 3; main → freed 5, → freed → gone 7; main → [vdso] 11
    parents: [0, 0, 1, 2, 3, 2],
    nodeFrames: [0, 0, 3, 1, 2, 4],
    selfCounts: [0, 0, 3, 5, 7, 11],
  } as unknown as StackCounts;
  const meter = new QualityMeter();
  meter.add(part);
  expect(meter.quality).toMatchObject({ samples: 26, named: 3, unread: [{ marker: freed, samples: 12 }] });
});
