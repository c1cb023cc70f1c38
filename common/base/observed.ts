/**
 * What `--telemetry` says of, for whoever subscribes: a message costs nothing while nobody does
 * (`channel.hasSubscribers`). Channels are the process's, whichever bundle asks for them.
 */
import { channel } from 'node:diagnostics_channel';

/** A request for samples, and what became of it. Times are Unix time in milliseconds. */
export interface ObservedRequest {
  startMs: number;
  endMs: number;
  /** Before compression. */
  bytes: number;
  /** Of a peer's request: its address. */
  peer?: string;
  samples?: number;
  /** `ok`, or what went wrong. */
  result: string;
}

/** {@link ObservedRequest}s that left, one a try. */
export const requestsSent = channel('everyframe.requests-sent');
/** {@link ObservedRequest}s that came. */
export const requestsTaken = channel('everyframe.requests-taken');
/** Lines of the log: pino's JSON. */
export const logLines = channel('everyframe.log-lines');
