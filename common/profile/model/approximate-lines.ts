/** Of a JVM without DebugNonSafepoints: which method and line an instruction is of is known at safepoints only. */
import { readAttributes } from './attributes.ts';
import type { Profile } from './profile.ts';

/** Of a process, as attributes are. */
export const APPROXIMATE_LINES = ['everyframe.jvm.lines', 'approximate'] as const;

/** A sentence on the processes of a profile that it is true of, '' for none. */
export function describeApproximateLines({ processes }: Pick<Profile, 'processes'>): string {
  const found = processes.filter(
    ({ attributes = '' }) => readAttributes(attributes).get(APPROXIMATE_LINES[0]) === APPROXIMATE_LINES[1],
  );
  if (found.length === 0) return '';
  const [first] = found;
  const others = found.length > 1 ? ` and ${found.length - 1} more` : '';
  return (
    `Lines and inlined callees of ${first!.executableName} (${first!.pid})${others} are approximate: ` +
    'the JVM runs without -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints.'
  );
}
