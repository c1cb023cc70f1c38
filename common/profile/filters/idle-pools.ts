/**
 * Threads that wait for work, told by their stacks: most of what a server waits says nothing of its requests. What no rule
 * knows is taken for a wait that somebody minds. Rules go by names and files, not by kinds of frames: pprof has none.
 */
import { FRAME_TYPES } from '../model/frame-types.ts';
import { type CodeFrame, isStartOfThread, runtimeOf } from './my-code.ts';

/** `fold`: one box of each pool; `hide`: nothing of them. */
export const IDLE_MODES = ['fold', 'hide'] as const;
export type IdleMode = (typeof IDLE_MODES)[number];

export const readIdleMode = (values: readonly string[]): IdleMode | undefined =>
  IDLE_MODES.find((mode) => values.join() === mode);

/** Name of the frame that stands for a pool. */
export const idleFrameName = (pool: string): string => `[idle: ${pool}]`;

/** What libc and Go's runtime call to wait, the symbol's version behind it. */
const WAIT =
  /^(?:_*pthread_(?:cond_(?:timed|clock)?wait|clockjoin|(?:timed)?join)\w*|_*(?:new_)?sem_(?:timed|clock)?wait\w*|_*(?:epoll_p?wait2?|p?poll|p?select)|(?:_*libc_)?accept4?|runtime\.(?:futex|usleep|epollwait)|(?:internal\/)?runtime\/(?:internal\/)?syscall(?:\/linux)?\.Syscall6)(?:\.abi0|@.*)?$/;
const CONDITION = /^_*pthread_cond_/;
/** Waits as well where the file is a pipe that nobody has opened at its other end; else for a disk. */
const OPEN = /^(?:__(?:libc_)?)?open(?:at)?(?:64)?(?:@.*)?$/;
/** Below the first of them libc has functions of its own. */
export const MAX_BELOW_WAIT = 5;

/** Whether a thread that is in it may be one of a pool. */
export const mayWait = (name: string): boolean => WAIT.test(name) || OPEN.test(name);

/** A function that only waits for work, unless there is a frame of another kind between it and the wait. */
interface WaitingFunction {
  pool: string;
  /** `caller`: name of the frame above it. */
  test(frame: CodeFrame, caller: string): boolean;
  /** Of the frames below it: it does what it has found. */
  isWork(frame: CodeFrame): boolean;
}

/** Of a program that runs in the JVM. */
const isJavaWork = ({ name, file }: CodeFrame): boolean =>
  /\.(?:java|kt|scala|groovy|clj)$/.test(file) && !/^(?:java|jdk|sun)\./.test(name);

const FUNCTIONS: readonly WaitingFunction[] = [
  {
    pool: 'Go thread',
    test: ({ name }) =>
      /^(?:runtime\.(?:stopm|find[rR]unnable|sysmon|templateThread)|os\/signal\.signal_recv)$/.test(name),
    isWork: ({ name }) => !/^(?:runtime|internal|syscall)[./]/.test(name),
  },
  {
    pool: 'Java pool',
    test: ({ name }) =>
      /^java\.util\.concurrent\.(?:ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork)\b/.test(name),
    isWork: isJavaWork,
  },
  {
    pool: 'JVM',
    test: ({ name }) =>
      /^(?:JVM_WaitForReferencePendingList|(?:java\.lang\.ref\.Finalizer\$FinalizerThread|jdk\.internal\.ref\.CleanerImpl)\.run)\b/.test(
        name,
      ),
    isWork: isJavaWork,
  },
  {
    pool: 'Python pool',
    test: ({ name, file }) =>
      /^_?worker$/.test(name) && /(?:futures\/thread|multiprocessing\/pool)\.py$/.test(file),
    // it calls what it was given from another function of Python's
    isWork: ({ file }) => file.endsWith('.py'),
  },
  {
    // a connection between two commands, and processes that look after the others; Debian's have names of global functions alone
    pool: 'PostgreSQL',
    test: ({ name }, caller) =>
      /^(?:PostmasterMain|StartAutoVacLauncher|(?:Checkpointer|BackgroundWriter|WalWriter|ApplyLauncher)Main)$/.test(
        name,
      ) ||
      (name === 'pq_getbyte' && /^(?:PostgresMain|ReadCommand|SocketBackend)$/.test(caller)),
    isWork: ({ name }) =>
      !/^(?:ServerLoop|AutoVacLauncherMain|WaitLatch|WaitEventSetWait(?:Block)?|secure_read|pq_(?:recvbuf|getbyte)|postgres\+0x[\da-f]+)$/.test(
        name,
      ),
  },
];

/**
 * The pool that a thread waits in; undefined: it waits for something else, or runs.
 *
 * @param frames of its program, the outermost first
 */
export function idlePool(frames: readonly CodeFrame[]): string | undefined {
  const wait = indexOfCall(frames, WAIT);
  if (wait <= 0) return poolOfDebugger(frames.slice(0, Math.max(0, indexOfCall(frames, OPEN))));
  const callers = frames.slice(0, wait);
  const pool = poolOfFunction(callers);
  if (pool !== undefined) return pool;
  return isNative(callers) ? (poolOfRuntime(callers) ?? poolOfRoot(callers, frames[wait]!)) : undefined;
}

const indexOfCall = (frames: readonly CodeFrame[], names: RegExp): number =>
  frames.findIndex(({ name }, i) => i >= frames.length - MAX_BELOW_WAIT && names.test(name));

const isNative = (callers: readonly CodeFrame[]): boolean =>
  callers.every(({ kind }) => kind === 'native' || kind === 'unknown');

/** .NET's thread "DebugPipe" is in the open() of a pipe until a debugger comes. */
function poolOfDebugger(callers: readonly CodeFrame[]): string | undefined {
  const label = FRAME_TYPES.dotnet.label;
  return isThread(callers) && isNative(callers) && poolOfRuntime(callers) === label ? label : undefined;
}

function poolOfFunction(callers: readonly CodeFrame[]): string | undefined {
  for (const { pool, test, isWork } of FUNCTIONS) {
    const at = callers.findLastIndex((frame, i) => test(frame, callers[i - 1]?.name ?? ''));
    if (at >= 0 && !callers.slice(at + 1).some(isWork)) return pool;
  }
  return undefined;
}

/** Nothing but a runtime waits: a thread of its own, or one that calls the program's functions when there is something to do. */
function poolOfRuntime(callers: readonly CodeFrame[]): string | undefined {
  const own = callers.filter((frame) => !isStartOfThread(frame));
  const runtimes = new Set(own.map(({ mapping }) => runtimeOf(mapping)));
  const [runtime] = runtimes;
  if (runtimes.size !== 1 || runtime === undefined) return undefined;
  const names = own.map(({ name }) => name);
  if (names.at(-2) === 'worker' && names.at(-1) === 'uv_cond_wait') return 'libuv worker';
  return names.includes('uv__io_poll') ? 'libuv event loop' : FRAME_TYPES[runtime].label;
}

/** Not the one that main is called in. */
const isThread = (callers: readonly CodeFrame[]): boolean =>
  callers.some(({ name }) => /^(?:start_thread|(?:__)?clone3?)\b/.test(name));

/** A thread's own function waits on a condition: that is how pools in C and C++ wait for work. */
function poolOfRoot(callers: readonly CodeFrame[], wait: CodeFrame): string | undefined {
  const own = callers.filter((frame) => !isStartOfThread(frame));
  return isThread(callers) && own.length === 1 && CONDITION.test(wait.name) ? 'worker' : undefined;
}
