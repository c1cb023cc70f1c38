/** What a sample of a wait says beside its stack: what the thread waited for, and who has ended it. */
import { attributesText } from '../../common/profile/model/attributes.ts';
import { Origin, SAMPLE, ThreadState, WAIT } from '../records/records.gen.ts';
import { readComm } from '../records/records.ts';

/** Attributes of samples. */
export const THREAD_STATE = 'thread.state';
/** Name of the thread. */
export const THREAD_WAKER = 'thread.waker';

/** By {@link ThreadState}. */
export const STATE_NAMES: readonly string[] = namesOf({
  RUNNING: 'running',
  RUNNABLE: 'runnable',
  DISK: 'blocked:disk',
  LOCK: 'blocked:lock',
  NETWORK: 'blocked:network',
  SLEEP: 'blocked:sleep',
  PAGE_FAULT: 'blocked:page-fault',
  OTHER: 'blocked:other',
});

function namesOf(names: Record<keyof typeof ThreadState, string>): string[] {
  const byState: string[] = [];
  for (const [state, name] of Object.entries(names)) byState[ThreadState[state as keyof typeof names]] = name;
  return byState;
}

export const isWait = (buffer: Buffer, at: number, size: number): boolean =>
  buffer.readUInt16LE(at + SAMPLE.origin) === Origin.OFF_CPU && size >= WAIT.bytes;

/** As `attributesText` writes them. */
export function attributesOfWait(buffer: Buffer, at: number): string {
  const state = STATE_NAMES[buffer.readUInt32LE(at + WAIT.state)] ?? '';
  const waker = wakerOf(buffer, at);
  if (waker === '') return attributesText([[THREAD_STATE, state]]);
  return attributesText([
    [THREAD_STATE, state],
    [THREAD_WAKER, waker],
  ]);
}

/** '' where an interrupt has ended the wait, or nobody yet. The process is told where it is not the thread's own, and holds a
 * lock: a machine's pipes and children are ended by thousands of short-lived processes. */
function wakerOf(buffer: Buffer, at: number): string {
  const pid = buffer.readUInt32LE(at + WAIT.wakerTgid);
  if (pid === 0) return '';
  const name = readComm(buffer, at + WAIT.wakerComm);
  const isLock = buffer.readUInt32LE(at + WAIT.state) === ThreadState.LOCK;
  return isLock && pid !== buffer.readUInt32LE(at + SAMPLE.processTgid) ? `${name}/${pid}` : name;
}
