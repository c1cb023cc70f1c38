/** What a sample of a wait says beside its stack: what the thread waited for, and who has ended it. */
import { attributesText } from '../../common/profile/model/attributes.ts';
import { THREAD_STATE, THREAD_STATES, THREAD_WAKER } from '../../common/profile/model/thread-types.ts';
import { Origin, SAMPLE, ThreadState, WAIT } from '../records/records.gen.ts';
import { readComm } from '../records/records.ts';

export const isWait = (buffer: Buffer, at: number, size: number): boolean =>
  buffer.readUInt16LE(at + SAMPLE.origin) === Origin.OFF_CPU && size >= WAIT.bytes;

/** As `attributesText` writes them. */
export function attributesOfWait(buffer: Buffer, at: number): string {
  const state = THREAD_STATES[buffer.readUInt32LE(at + WAIT.state)] ?? '';
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
