import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Of a process that reads files: it is the first to end where memory is short, and the last to run. */
export function yieldToOthers(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
    setPriority(10);
  } catch {
    // as it was started, then
  }
}
