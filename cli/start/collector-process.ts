/** The collector of `everyframe run`: a process of its own, without rights, that outlives an agent that dies. */

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { packageRoot } from '../../agent/base/package-root.ts';
import { UNPRIVILEGED_USER } from '../../collector/settings/options.ts';
import type { CollectorReady } from './collector-ready.ts';
import { isAlive, type NotedCollector, type Supervisor } from './supervisor.ts';

/** A machine that is busy many times over takes half a minute. */
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 5000;
const LOOK_MS = 1000;

export interface CollectorProcess {
  ready: CollectorReady;
  /** Whether it is of an agent before this one. */
  isInherited: boolean;
  /** How it ended, by itself: a clause. */
  exited: Promise<string>;
  stop(): Promise<void>;
}

/** Takes over the one that is there. */
export function startCollectorProcess(
  flags: readonly string[],
  supervisor: Supervisor | undefined,
): Promise<CollectorProcess> {
  const noted = supervisor?.collector();
  return noted ? Promise.resolve(inherit(noted)) : start(flags, supervisor);
}

/** Nobody's child any more but the supervisor's, which ends it. */
function inherit(noted: NotedCollector): CollectorProcess {
  const exited = new Promise<string>((resolve) => {
    const look = setInterval(() => {
      if (isAlive(noted)) return;
      clearInterval(look);
      resolve('how is not known here');
    }, LOOK_MS).unref();
  });
  return { ready: noted.ready, isInherited: true, exited, stop: async () => {} };
}

/** The collector gives up its rights itself, once it has read its files: a checkout may lie where others can't read. */
async function start(
  flags: readonly string[],
  supervisor: Supervisor | undefined,
): Promise<CollectorProcess> {
  const drop = process.getuid?.() === 0 ? ['--user', UNPRIVILEGED_USER] : [];
  const child = spawn(
    process.execPath,
    // not execArgv: the agent's small heap is not the collector's
    [join(packageRoot(), 'dist/cli/main.js'), 'collector', '--child', '--plain-loopback', ...drop, ...flags],
    { stdio: ['ignore', 'ignore', 'inherit', 'ipc', supervisor?.lifeFd ?? 'pipe'], detached: true },
  );
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const ready = await untilReady(child, exited);
  supervisor?.note(child.pid!, ready);
  // from now on it ends with LIFE, and not with this agent
  child.send('noted');
  child.disconnect();
  return { ready, isInherited: false, exited, stop: () => stop(child, exited, supervisor) };
}

/** By the end of what it reads: an agent has no right to signal another user's process. */
async function stop(
  child: ChildProcess,
  exited: Promise<string>,
  supervisor: Supervisor | undefined,
): Promise<void> {
  if (supervisor) {
    child.unref();
    return;
  }
  const life = child.stdio[4] as Writable;
  life.on('error', () => {});
  life.end('{"state":"stopping"}\n');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}

function untilReady(child: ChildProcess, exited: Promise<string>): Promise<CollectorReady> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // which ends it
      child.disconnect();
      reject(new Error(`the collector was not ready within ${READY_TIMEOUT_MS / 1000} s`));
    }, READY_TIMEOUT_MS);
    child.once('message', (message) => {
      clearTimeout(timer);
      resolve(message as CollectorReady);
    });
    child.once('error', reject);
    void exited.then((how) => {
      clearTimeout(timer);
      reject(new Error(`the collector could not start (${how}): its own lines above say why`));
    });
  });
}
