/**
 * What a large machine asks of the agent, on a small one: so many samples a second as a hundred or two hundred CPUs give at
 * 97 Hz, and a thousand processes that start each second. Memory, CPU time, what was lost, and how late profiles come.
 * The load is nice: among a hundred CPUs the agent would find one of its own.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { cpuSeconds, Load, mapsOf, median, ROOT, residentMiB } from './measure.ts';
import { buildPrograms } from './start.ts';

interface Row {
  load: string;
  samplesPerSecond: number;
  taken: number;
  delivered: number;
  shed: number;
  lost: number;
  /** Of one core. */
  cpuPercent: number;
  residentMiB: number;
  mapsMiB: number;
  /** From the last sample of a profile to its arrival, seconds. */
  lateness: number[];
}

const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const CHANNEL = { 'grpc.max_receive_message_length': 64 << 20 };
const WARM_SECONDS = 60;
const STARTS_A_SECOND = 1000;
/** Hz of each CPU, as many samples a second in all as 100 and 200 CPUs give at 97 Hz. */
const RATES = [9700, 19_400].map((rate) => Math.floor(rate / availableParallelism()));

/** `directory`: of the side-by-side benchmark; its `load` has the programs. */
export async function measureLargeMachine(directory: string, seconds: number): Promise<Row[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'everyframe-large-'));
  const rows: Row[] = [];
  try {
    const programs = buildPrograms(join(directory, 'load'), scratch);
    for (const rate of RATES) {
      const load = new Load();
      for (const [path, ...args] of programs) load.startNice(path, args);
      rows.push(await measure('mixed', rate, seconds).finally(() => load.stop()));
    }
    const starts = join(scratch, 'starts');
    execFileSync('gcc', ['-O2', '-o', starts, `${ROOT}test/bench/load/starts.c`]);
    const load = new Load();
    load.start(starts, [String(STARTS_A_SECOND), '/bin/true']);
    rows.push(await measure(`${STARTS_A_SECOND} starts a second`, 97, seconds).finally(() => load.stop()));
    return rows;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function measure(load: string, hz: number, seconds: number): Promise<Row> {
  console.error(`${load} at ${hz} Hz`);
  const lateness: number[] = [];
  let delivered = 0;
  const receiver = await ScriptedReceiver.start({
    path: EXPORT,
    channel: CHANNEL,
    onCall: (call) => {
      call.ok();
      const nowMs = Date.now();
      for (const { samples, timeUnixNano, durationNano } of decodeOtlp(call.request).profiles) {
        delivered += samples.reduce((sum, { value }) => sum + value, 0);
        lateness.push(nowMs / 1000 - Number((timeUnixNano + durationNano) / 1_000_000n) / 1000);
      }
    },
  });
  const receives = ['--collection-agent', receiver.address, '--disable-tls'];
  const flags = ['agent', '-v', ...receives, '--samples-per-second', String(hz)];
  const child = spawn(`${ROOT}bin/everyframe`, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let log = '';
  child.stderr.on('data', (text) => {
    log += text;
  });
  try {
    await sleep(WARM_SECONDS * 1000);
    if (child.exitCode !== null) throw new Error(`the agent ended by itself with ${child.exitCode}: ${log}`);
    const [cpuBefore, begun] = [cpuSeconds(child.pid!), performance.now()];
    lateness.length = 0;
    let resident = 0;
    while (performance.now() - begun < seconds * 1000) {
      await sleep(1000);
      resident = Math.max(resident, residentMiB(child.pid!));
    }
    const cpuPercent = (100_000 * (cpuSeconds(child.pid!) - cpuBefore)) / (performance.now() - begun);
    const maps = [...mapsOf(child.pid!).values()].reduce((sum, bytes) => sum + bytes, 0);
    const inTime = [...lateness];
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGTERM');
    await ended;
    const counted = (name: string): number => Number(new RegExp(`"${name}":(\\d+)`).exec(log)?.[1] ?? 0);
    return {
      load,
      samplesPerSecond: hz * availableParallelism(),
      taken: counted('bpf.samples'),
      delivered,
      shed: counted('bpf.samples_shed'),
      lost: counted('bpf.samples_lost_ring') + counted('bpf.traces_lost_ring'),
      cpuPercent,
      residentMiB: resident,
      mapsMiB: maps / 2 ** 20,
      lateness: inTime,
    };
  } finally {
    process.off('exit', kill);
    kill();
    receiver.stop();
  }
}

export function describeLargeMachine(rows: readonly Row[]): string {
  const late = (values: readonly number[]): string =>
    values.length === 0 ? '–' : `${median([...values]).toFixed(1)} (${Math.max(...values).toFixed(1)})`;
  return [
    '| load | at most, samples a second | taken | delivered | left out by chance | lost | agent, % of a core | resident, MiB | BPF maps, MiB | profiles late, s: median (most) |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...rows.map((row) =>
      [
        `| ${row.load} | ${row.samplesPerSecond} | ${row.taken} | ${row.delivered} | ${row.shed} | ${row.lost}`,
        `${row.cpuPercent.toFixed(0)} | ${row.residentMiB.toFixed(0)} | ${row.mapsMiB.toFixed(0)} | ${late(row.lateness)} |`,
      ].join(' | '),
    ),
  ].join('\n');
}
