/** Attributes that are of samples, not of the process that they were taken in: of threads, and what a program says itself. */

/**
 * In front of the key of a label that the program has set, such as Go's with runtime/pprof. The name is the OpenTelemetry profiler's;
 * semantic conventions have none yet.
 */
export const PROGRAM_LABEL = 'process.context.label.';
export const GOROUTINE_ID = 'go.goroutine.id';
const BEAM_PROCESS = 'beam.process.';
/** Of Erlang and Elixir: `<0.123.0>`, and the name under which it is registered. */
export const BEAM_PROCESS_ID = `${BEAM_PROCESS}id`;
export const BEAM_PROCESS_NAME = `${BEAM_PROCESS}name`;

const PREFIXES = ['thread.', PROGRAM_LABEL, GOROUTINE_ID, BEAM_PROCESS];

export const isOfSample = (key: string): boolean => PREFIXES.some((prefix) => key.startsWith(prefix));

/** Whether `attributesText` may have written one of them. */
export const mayBeOfSample = (attributes: string): boolean =>
  PREFIXES.some((prefix) => attributes.includes(`"${prefix}`));
