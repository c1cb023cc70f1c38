/** Real requests for the store's benchmark: what the product's own agent sends while this machine does what it does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeOtlp } from '../../common/profile/otlp-decode.ts';
import { encodeOtlp } from '../../common/profile/otlp-encode.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { ROOT } from './measure.ts';

const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const SCOPE = { scopeName: 'everyframe', scopeVersion: 'bench' };

/** Requests of `seconds` of this machine at 97 Hz, kept under build/: captured once. Needs root. */
export async function captureRequests(seconds: number): Promise<Buffer[]> {
  const folder = join(ROOT, `build/bench/requests-${seconds}s`);
  if (!existsSync(folder)) {
    const requests = await capture(seconds);
    mkdirSync(folder, { recursive: true });
    for (const [i, bytes] of requests.entries())
      writeFileSync(join(folder, `${String(i).padStart(4, '0')}.otlp`), bytes);
  }
  return readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name)));
}

async function capture(seconds: number): Promise<Buffer[]> {
  const requests: Buffer[] = [];
  const receiver = await ScriptedReceiver.start({
    path: PATH,
    onCall: (call) => {
      requests.push(call.request);
      call.ok();
    },
  });
  const flags = ['--collection-agent', receiver.address, '--disable-tls', '--samples-per-second', '97'];
  const agent = spawn(join(ROOT, 'bin/everyframe'), ['agent', ...flags], { stdio: 'inherit' });
  await sleep(seconds * 1000);
  agent.kill('SIGTERM');
  await once(agent, 'exit');
  await receiver.stop();
  return requests;
}

/** The same requests again and again, each time later and from the next of several hosts. */
export class Repeater {
  readonly #profiles: Profile[][];
  readonly #hosts: number;
  /** Time of the oldest event. */
  readonly firstNanos: bigint;

  constructor(requests: readonly Buffer[], hosts: number) {
    this.#profiles = requests.map((bytes) => decodeOtlp(bytes).profiles);
    this.#hosts = hosts;
    const times = this.#profiles
      .flat()
      .flatMap(({ samples }) => samples.flatMap(({ timestamps }) => timestamps));
    const sorted = times.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    this.firstNanos = sorted[0] ?? 0n;
  }

  get samples(): number {
    return this.#profiles
      .flat()
      .reduce((sum, { samples }) => sum + samples.reduce((n, s) => n + s.count, 0), 0);
  }

  /** Requests of one round; `shiftNanos` is added to all their times. */
  *round(index: number, shiftNanos: bigint): Generator<Buffer> {
    for (const profiles of this.#profiles) {
      for (const profile of profiles) {
        const samples = profile.samples.map((sample) => ({
          ...sample,
          timestamps: sample.timestamps.map((time) => time + shiftNanos),
        }));
        const host = { ...profile.host, 'host.name': `host-${index % this.#hosts}` };
        const moved = { ...profile, timeUnixNano: profile.timeUnixNano + shiftNanos, samples, host };
        yield Buffer.from(encodeOtlp(moved, SCOPE));
      }
    }
  }
}
