/** The built agent as a process of its own, and what it says of itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { EVERYFRAME } from './collector.ts';

export interface AgentFootprint {
  residentBytes: number;
  /** Entries of its own address space. */
  mappings: number;
  descriptors: number;
}

export class AgentProcess {
  readonly pid: number;
  readonly #child: ChildProcess;
  #log = '';

  /** Pushes to `address`; further flags as on the command line. */
  constructor(address: string, ...flags: string[]) {
    // bin/everyframe replaces itself by node, so the child is the agent
    // what it counted is in its log with -v only
    const own = ['agent', '-v', '--collection-agent', address, '--disable-tls'];
    this.#child = spawn(EVERYFRAME, [...own, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.pid = this.#child.pid!;
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
  }

  /** JSON lines. */
  get log(): string {
    return this.#log;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  footprint(): AgentFootprint {
    const proc = `/proc/${this.pid}`;
    const status = readFileSync(`${proc}/status`, 'utf8');
    return {
      residentBytes: Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024,
      mappings: readFileSync(`${proc}/maps`, 'utf8').split('\n').length - 1,
      descriptors: readdirSync(`${proc}/fd`).length,
    };
  }

  /** Ends it as an administrator does; what it counted, each counter that is not 0. */
  async stop(): Promise<Record<string, number>> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const [code, signal] = await ended;
    const last = this.#log.split('\n').find((line) => line.includes('"counters":'));
    if (code !== 0 || !last) throw new Error(`the agent ended with ${code ?? signal}: ${this.#log}`);
    return (JSON.parse(last) as { counters: Record<string, number> }).counters;
  }

  async kill(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
