import { uptime } from 'node:os';
import { readSmallFile } from './proc-files.ts';

/** Turns CLOCK_BOOTTIME, in which the kernel notes when a process started, into time since the Unix epoch. */
export interface BootClock {
  toUnixNanos(boottimeNs: bigint): bigint;
}

const MS = 1_000_000n;
const REFRESH_NS = 60n * 1_000_000_000n;
/** /proc/uptime has two decimals. */
const UPTIME_STEP_NS = 10n * MS;

/**
 * Boottime is the monotonic clock plus the time that the machine slept. The monotonic clock is read to the
 * nanosecond; only the time slept is taken from /proc/uptime, and is 0 on most machines that get profiled. The
 * result is right to a millisecond or two there, and to 10 ms on a machine that slept.
 */
export function createBootClock(proc = '/proc'): BootClock {
  let offsetNs = 0n;
  let measuredAt: bigint | undefined;
  return {
    toUnixNanos(boottimeNs) {
      const now = process.hrtime.bigint();
      if (measuredAt === undefined || now - measuredAt > REFRESH_NS) {
        const asleep = (readUptimeNs(proc) ?? toNanos(uptime())) - process.hrtime.bigint();
        const slept = asleep > -2n * UPTIME_STEP_NS && asleep < 2n * UPTIME_STEP_NS ? 0n : asleep;
        offsetNs = BigInt(Date.now()) * MS - process.hrtime.bigint() - slept;
        measuredAt = now;
      }
      return boottimeNs + offsetNs;
    },
  };
}

/** In a worker, which can't open a file, the kernel's own clock answers. */
const toNanos = (seconds: number): bigint => BigInt(Math.round(seconds * 1e9));

function readUptimeNs(proc: string): bigint | undefined {
  const match = /^(\d+)\.(\d{2}) /.exec(readSmallFile(`${proc}/uptime`) ?? '');
  return match ? BigInt(match[1]! + match[2]!) * UPTIME_STEP_NS : undefined;
}
