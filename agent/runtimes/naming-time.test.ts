import { describe, expect, it } from 'vitest';
import { NamingTime } from './naming-time.ts';

/** A clock whose hands are moved. */
class Hands {
  cpu = 0;
  wall = 0;
  cpuMicros = () => this.cpu;
  wallMs = () => this.wall;
}

const spend = (time: NamingTime, clock: Hands, cpuMs: number): string =>
  time.spend(() => {
    clock.cpu += cpuMs * 1000;
    return 'read';
  });

describe('the time that one process may cost', () => {
  it('is up after two seconds of CPU time, however long they took', () => {
    const clock = new Hands();
    const time = new NamingTime(clock);
    expect(spend(time, clock, 1999)).toBe('read');
    expect(time.isUp).toBe(false);
    spend(time, clock, 2);
    expect(time.isUp).toBe(true);
  });

  it('comes back at 5 % of a CPU, up to what it was at first', () => {
    const clock = new Hands();
    const time = new NamingTime(clock);
    spend(time, clock, 2100);
    clock.wall = 1999;
    expect(time.isUp).toBe(true);
    clock.wall = 2001;
    expect(time.isUp).toBe(false);
    spend(time, clock, 1000);
    clock.wall = 1e9;
    expect(time.isUp).toBe(false);
    spend(time, clock, 2001);
    expect(time.isUp).toBe(true);
  });
});
