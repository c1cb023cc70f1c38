/** Peers that benchmarks run beside us: EVERYFRAME_PEERS names the directory that holds them. They end with us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const named = process.env['EVERYFRAME_PEERS'];
if (named === undefined)
  throw new Error('EVERYFRAME_PEERS: name the directory with ebpf-profiler and otelcol');
export const peers = named;
/** Logs of peers, and what they write. */
export const folder = mkdtempSync(join(tmpdir(), 'everyframe-feeders-'));
const children: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

export function run(command: string, flags: string[], log?: string): ChildProcess {
  const child = spawn(command, flags, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data) => {
      text = (text + data).slice(-100_000);
      if (log !== undefined) writeFileSync(join(folder, log), text);
    });
  return child;
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await once(child, 'exit');
  clearTimeout(late);
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

export async function untilListening(port: number, child: ChildProcess): Promise<void> {
  for (let i = 0; i < 300; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}`).then(
      () => '',
      (error: Error) => String(error.cause),
    );
    if (!answer.includes('ECONNREFUSED')) return;
    if (child.exitCode !== null) throw new Error(readFileSync(join(folder, 'otelcol.log'), 'utf8'));
    await sleep(200);
  }
  throw new Error('the Collector does not listen');
}
