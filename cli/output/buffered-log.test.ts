import { describe, expect, it } from 'vitest';
import { BufferedLog } from './buffered-log.ts';

describe('the log of a full-screen view', () => {
  it('is written at once before and after, and held in between', () => {
    const written: string[] = [];
    const log = new BufferedLog((text) => written.push(text));
    log.add('before\n');
    log.hold();
    log.add('one\n');
    log.add('two\n  at line 2\n');
    expect(written).toEqual(['before\n']);
    expect(log.unread).toBe('two   at line 2');
    log.markRead();
    expect(log.unread).toBe('');
    log.release();
    log.add('after\n');
    expect(written).toEqual(['before\n', 'one\n', 'two\n  at line 2\n', 'after\n']);
  });

  it('keeps the last 1000 lines and says how many it dropped', () => {
    const written: string[] = [];
    const log = new BufferedLog((text) => written.push(text));
    log.hold();
    for (let i = 0; i < 1005; i++) log.add(`line ${i}\n`);
    log.release();
    expect(written.slice(0, 2)).toEqual(['5 older lines of the log were dropped\n', 'line 5\n']);
    expect(written).toHaveLength(1001);
  });
});
