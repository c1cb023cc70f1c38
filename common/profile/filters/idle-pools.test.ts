import { expect, it } from 'vitest';
import { idlePool } from './idle-pools.ts';

const FILES: Record<string, string> = {
  libc: '/usr/lib/x86_64-linux-gnu/libc.so.6',
  'libstdc++': '/usr/lib/libstdc++.so.6.0.30',
  node: '/usr/bin/node',
  jvm: '/usr/lib/jvm/lib/server/libjvm.so',
  coreclr: '/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.4/libcoreclr.so',
  app: '/srv/app',
};

/** `name@binary` or `name#source`, the outermost first. */
const poolOf = (stack: string): string | undefined =>
  idlePool(
    stack.split(' > ').map((text) => {
      const [name = '', binary = ''] = text.split(/[@#]/);
      const isSource = text.includes('#');
      return {
        name,
        kind: 'native',
        file: isSource ? binary : '',
        mapping: isSource ? '' : (FILES[binary] ?? ''),
      };
    }),
  );

const THREAD = 'clone3@libc > start_thread@libc';
const CONDITION =
  '___pthread_cond_wait@libc > __pthread_cond_wait_common@libc > __futex_abstimed_wait_common64@libc';

it('a thread whose own function waits on a condition is one of a pool', () => {
  expect(poolOf(`${THREAD} > take_work@app > ${CONDITION}`)).toBe('worker');
  expect(
    poolOf(
      `${THREAD} > execute_native_thread_routine@libstdc++ > std::thread::_M_run()@app > run()@app > ${CONDITION}`,
    ),
  ).toBe('worker');
});

it('what waits on a condition in the middle of something, or in main, or on a lock is none', () => {
  expect(poolOf(`${THREAD} > serve@app > wait_for_answer@app > ${CONDITION}`)).toBeUndefined();
  expect(poolOf(`_start@app > __libc_start_main@libc > main@app > ${CONDITION}`)).toBeUndefined();
  expect(poolOf(`${THREAD} > serve@app > pthread_mutex_lock@libc > __lll_lock_wait@libc`)).toBeUndefined();
  expect(poolOf(`${THREAD} > take_work@app > compute@app`)).toBeUndefined();
  expect(poolOf(`[cut: no unwind information] > take_work@app > ${CONDITION}`)).toBeUndefined();
});

it('threads of a runtime that run nothing of the program are idle', () => {
  expect(poolOf(`${THREAD} > worker@node > uv_cond_wait@node > ${CONDITION}`)).toBe('libuv worker');
  expect(
    poolOf(
      '_start@node > __libc_start_main@libc > node::Start@node > uv_run@node > uv__io_poll@node > epoll_pwait@libc',
    ),
  ).toBe('libuv event loop');
  expect(
    poolOf(`${THREAD} > CompileQueue::get()@jvm > os::PlatformMonitor::wait(long)@jvm > ${CONDITION}`),
  ).toBe('JVM');
  expect(
    poolOf(`_start@node > node::Start@node > onRequest#/srv/a.js > Atomics.wait@node > ${CONDITION}`),
  ).toBeUndefined();
});

it('a thread of .NET waits for a debugger by opening a pipe; other opens are waits for a disk', () => {
  const pipe = 'libcoreclr.so+0x616fbd@coreclr > libcoreclr.so+0x50811e@coreclr > __libc_open64@libc';
  expect(poolOf(`${THREAD} > ${pipe}`)).toBe('.NET');
  expect(poolOf(`_start@app > __libc_start_main@libc > ${pipe}`)).toBeUndefined();
  expect(
    poolOf(`${THREAD} > libcoreclr.so+0x616fbd@coreclr > Program.Load#/srv/a.cs > open@libc`),
  ).toBeUndefined();
  expect(poolOf(`${THREAD} > Compile()@jvm > open64@libc`)).toBeUndefined();
  expect(poolOf('_start > main > PostmasterMain > open64@libc')).toBeUndefined();
  expect(poolOf(`${THREAD} > open@app > ${CONDITION}`)).toBe('worker');
});

it('knows the functions in which Go, Java and Python wait for work, unless they have found some', () => {
  expect(
    poolOf(
      'runtime.mcall@app > runtime.schedule@app > runtime.findRunnable@app > runtime.netpoll@app > runtime.futex@app',
    ),
  ).toBe('Go thread');
  expect(poolOf('main.main@app > main.lock@app > runtime.futex@app')).toBeUndefined();
  const java = `${THREAD} > JavaCalls::call_helper@jvm > java.util.concurrent.ThreadPoolExecutor.runWorker#ThreadPoolExecutor.java`;
  expect(
    poolOf(
      `${java} > java.util.concurrent.ThreadPoolExecutor.getTask#ThreadPoolExecutor.java > Unsafe_Park@jvm > ${CONDITION}`,
    ),
  ).toBe('Java pool');
  expect(poolOf(`${java} > com.acme.Job.run#Job.java > Unsafe_Park@jvm > ${CONDITION}`)).toBeUndefined();
  const python = `${THREAD} > _worker#/usr/lib/python3.11/concurrent/futures/thread.py`;
  expect(poolOf(`${python} > sem_wait@libc`)).toBe('Python pool');
  expect(
    poolOf(`${python} > _WorkItem.run#/usr/lib/python3.11/concurrent/futures/thread.py > sem_wait@libc`),
  ).toBeUndefined();
});

it('knows where PostgreSQL waits for a command, unless it executes one', () => {
  const main = '_start > main > PostmasterMain';
  const wait = 'secure_read > WaitEventSetWait > epoll_wait@libc';
  expect(poolOf(`${main} > postgres+0x3ee64e > __select@libc`)).toBe('PostgreSQL');
  expect(poolOf(`${main} > postgres+0x3ef > PostgresMain > pq_getbyte > postgres+0x34b > ${wait}`)).toBe(
    'PostgreSQL',
  );
  expect(
    poolOf(`${main} > ServerLoop > PostgresMain > ReadCommand > SocketBackend > pq_getbyte > ${wait}`),
  ).toBe('PostgreSQL');
  expect(
    poolOf(`${main} > postgres+0x3ef > WalWriterMain > WaitLatch > WaitEventSetWait > epoll_wait@libc`),
  ).toBe('PostgreSQL');
  expect(poolOf(`${main} > postgres+0x3ef > PostgresMain > DoCopy > pq_getbyte > ${wait}`)).toBeUndefined();
  expect(
    poolOf(
      `${main} > postgres+0x3ef > PostgresMain > ProcSleep > WaitLatch > WaitEventSetWait > epoll_wait@libc`,
    ),
  ).toBeUndefined();
});
