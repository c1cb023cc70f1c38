/** The built collector as a process of its own, on free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** This file runs from test/support, and for benchmarks from dist/test/support. */
const ROOT = join(import.meta.dirname, import.meta.dirname.includes('/dist/test/') ? '../../..' : '../..');
export const EVERYFRAME = join(ROOT, 'bin/everyframe');
const FREE_PORTS = ['grpc', 'http', 'page'].flatMap((name) => [`--${name}-listen`, '127.0.0.1:0']);

export interface RunningCollector {
  process: ChildProcess;
  page: string;
  grpc: string;
  http: string;
  /** What it wrote to standard error. */
  errors(): string;
  /** GET of the query API, as JSON. */
  query<T>(path: string): Promise<T>;
  /** Ends it with a signal; resolves when it is gone. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

/** @throws Error with what it wrote when it ends instead of listening */
export async function startCollectorProcess(...flags: string[]): Promise<RunningCollector> {
  const child = spawn(EVERYFRAME, ['collector', ...FREE_PORTS, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const { page, grpc, http } = await addressesOf(child, () => errors);
  return {
    process: child,
    page,
    grpc,
    http,
    errors: () => errors,
    query: async <T>(path: string): Promise<T> => {
      const response = await fetch(new URL(path, page));
      if (!response.ok) throw new Error(await response.text());
      return (await response.json()) as T;
    },
    async end(signal = 'SIGTERM') {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, 'exit');
    },
  };
}

interface Addresses {
  page: string;
  grpc: string;
  http: string;
}

/** In the line of its log that has them. */
function addressesOf(child: ChildProcess, errors: () => string): Promise<Addresses> {
  return new Promise((resolve, reject) => {
    child.stderr!.on('data', () => {
      const lines = errors().split('\n').slice(0, -1);
      const line = lines.find((each) => each.includes('"page":'));
      if (line !== undefined) resolve(JSON.parse(line) as Addresses);
    });
    child.once('exit', () => reject(new Error(`the collector ended: ${errors()}`)));
  });
}
