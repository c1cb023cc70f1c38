/** Real requests for the store's benchmark: what the product's own agent sends while this machine does what it does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Long from 'long';
import { opentelemetry } from '#otlp';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { ROOT } from './measure.ts';
import { firstPidSince, varyRequest } from './vary-request.ts';

const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';

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

type Request = opentelemetry.proto.collector.profiles.v1development.IExportProfilesServiceRequest;
const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

/** The same requests again and again, each time later and with as much that is new as a recording of that time would have. */
export class Repeater {
  readonly #requests: readonly Buffer[];
  readonly samples: number;
  /** Time of the oldest event. */
  readonly firstNanos: bigint;
  /** PIDs from here on are of processes that began during the recording. */
  readonly #firstNewPid: number;

  constructor(requests: readonly Buffer[]) {
    this.#requests = requests;
    const samples = requests
      .flatMap((bytes) => decodeOtlp(bytes).profiles)
      .flatMap((profile) => profile.samples);
    this.samples = samples.reduce((sum, { value }) => sum + value, 0);
    const times = samples.flatMap(({ timestamps }) => timestamps);
    this.firstNanos = times.reduce((least, time) => (time < least ? time : least), times[0] ?? 0n);
    this.#firstNewPid = firstPidSince(
      requests.map((bytes) => ExportRequest.decode(bytes)),
      this.firstNanos,
    );
  }

  /** Requests of one round; `shiftNanos` is added to all their times. */
  *round(index: number, shiftNanos: bigint): Generator<Buffer> {
    const shift = Long.fromBigInt(shiftNanos, true);
    for (const bytes of this.#requests) {
      const request: Request = ExportRequest.decode(bytes);
      varyRequest(request, index, this.#firstNewPid);
      for (const { scopeProfiles } of request.resourceProfiles ?? []) {
        for (const profile of scopeProfiles?.flatMap(({ profiles }) => profiles ?? []) ?? []) {
          profile.timeUnixNano = shift.add(Long.fromValue(profile.timeUnixNano ?? 0));
          for (const sample of profile.samples ?? [])
            sample.timestampsUnixNano = (sample.timestampsUnixNano ?? []).map((time) =>
              shift.add(Long.fromValue(time)),
            );
        }
      }
      yield Buffer.from(ExportRequest.encode(request).finish());
    }
  }
}
