import { createContext } from 'preact';
import type { StatusResponse } from '../../status/status.ts';

/** Whether lines and inlined callees of Java are approximate in a process that an agent samples. */
export const ApproximateJava = createContext(false);

export const hasApproximateJava = (status: StatusResponse | undefined): boolean =>
  status?.agents.some(({ counters }) => (counters?.['processRuntimes.approximate'] ?? 0) > 0) ?? false;
