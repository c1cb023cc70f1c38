/** Frames of a language runtime whose function could not be read: the agent writes why, and the page says what to do. */
export const UNNAMED_REASONS = {
  unreadable: 'its process ended, or did not answer, before it could be read',
  replaced: 'it was freed or moved before its name could be read',
  malformed: 'its name is not stored as this version of the runtime stores names',
  costly: 'reading the names of its process takes too long',
  failed: "the agent's code for it failed",
  unknownFile: 'the file of its interpreter is not known any more',
} as const;

export type UnnamedReason = keyof typeof UNNAMED_REASONS;

/** `runtime`: as a plug-in is called, `cpython`. */
export const unnamedMarker = (runtime: string, reason: string): string => `[${runtime}: ${reason}]`;

/** Undefined for every other frame. */
export function unnamedReasonOf(name: string): { runtime: string; reason: UnnamedReason } | undefined {
  const match = /^\[([\w.]+): (.*)\]$/.exec(name);
  if (!match) return undefined;
  const [, runtime, text] = match;
  for (const [reason, known] of Object.entries(UNNAMED_REASONS))
    if (known === text) return { runtime: runtime!, reason: reason as UnnamedReason };
  return undefined;
}
