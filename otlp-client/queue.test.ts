import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type QueueEntry, RequestQueue } from './queue.ts';

const entry = (size: number, samples = 1): QueueEntry => ({ bytes: new Uint8Array(size), samples });

function drain(queue: RequestQueue): QueueEntry[] {
  const out: QueueEntry[] = [];
  for (let next = queue.shift(); next; next = queue.shift()) out.push(next);
  return out;
}

describe('RequestQueue', () => {
  it('gives entries in the order they came and drops the oldest for room', () => {
    const queue = new RequestQueue({ maxBytes: 10, maxEntries: 3 });
    const [a, b, c, d] = [entry(1, 10), entry(1, 20), entry(1, 30), entry(9, 40)];
    for (const each of [a, b, c]) queue.push(each);
    queue.push(d);
    expect(queue.dropped).toEqual({ requests: 2, samples: 30, unansweredSamples: 0 });
    expect([queue.length, queue.bytes, queue.samples]).toEqual([2, 10, 70]);
    expect(drain(queue)).toEqual([c, d]);
  });

  it('keeps the entry that is on the wire', () => {
    const queue = new RequestQueue({ maxBytes: 100, maxEntries: 2 });
    const [a, b, c] = [entry(1), entry(2), entry(3)];
    queue.push(a);
    queue.push(b, true);
    queue.push(c, true);
    expect(drain(queue)).toEqual([a, c]);
    expect(queue.dropped.requests).toBe(1);
  });

  it('drops what can never fit', () => {
    const queue = new RequestQueue({ maxBytes: 10, maxEntries: 1 });
    queue.push(entry(11, 5));
    queue.push(entry(1, 1));
    queue.push(entry(1, 7), true);
    queue.unshift(entry(1, 9));
    expect(queue.dropped).toEqual({ requests: 3, samples: 21, unansweredSamples: 0 });
    expect(queue.length).toBe(1);
  });

  it('behaves like a plain list', () => {
    const step = fc.record({
      kind: fc.constantFrom('push', 'pushKeep', 'shift', 'unshift'),
      size: fc.nat(12),
      samples: fc.nat(9),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (steps, maxEntries) => {
        const maxBytes = 20;
        const queue = new RequestQueue({ maxBytes, maxEntries });
        let model: QueueEntry[] = [];
        const fits = (list: QueueEntry[]): boolean =>
          list.length <= maxEntries && list.reduce((n, e) => n + e.bytes.length, 0) <= maxBytes;
        let dropped = 0;
        for (const { kind, size, samples } of steps) {
          const next = entry(size, samples);
          if (kind === 'shift') {
            expect(queue.shift()).toBe(model.shift());
          } else if (kind === 'unshift') {
            queue.unshift(next);
            if (fits([next, ...model])) model = [next, ...model];
            else dropped += samples;
          } else {
            const keep = kind === 'pushKeep' ? model.slice(0, 1) : [];
            queue.push(next, kind === 'pushKeep');
            let rest = model.slice(keep.length);
            if (!fits([...keep, next])) {
              dropped += samples;
            } else {
              while (!fits([...keep, ...rest, next])) {
                dropped += rest[0]!.samples;
                rest = rest.slice(1);
              }
              model = [...keep, ...rest, next];
            }
          }
          expect(queue.peek()).toBe(model[0]);
          expect(queue.length).toBe(model.length);
          expect(queue.bytes).toBe(model.reduce((n, e) => n + e.bytes.length, 0));
          expect(queue.samples).toBe(model.reduce((n, e) => n + e.samples, 0));
          expect(queue.dropped.samples).toBe(dropped);
        }
        expect(drain(queue)).toEqual(model);
      }),
    );
  });
});
