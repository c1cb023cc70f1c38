/** What whoever runs such a V8 can do: see docs/jit-code.md. */
export const WRITES_NAMES =
  'started with --js-flags=--perf-basic-prof, or as its program passes flags to V8, it writes names down';
