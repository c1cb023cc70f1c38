/** Names of the frames that end a stack which was cut: the agent writes them, and the page says what to do about each. */
export const CUT_MARKERS = {
  depth: '[cut: deeper than the limit]',
  noTable: '[cut: no unwind information in this file]',
  pending: '[cut: unwind information not ready yet]',
  noRule: '[cut: no unwind information for this code]',
  anonymous: '[cut: code that no file backs]',
  stackRead: '[cut: stack memory not resident]',
  unmapped: '[cut: return address in no code]',
  register: '[cut: needs a register that is not kept]',
  noProgress: '[cut: stack does not advance]',
  compat: '[cut: 32-bit process]',
  vmaRace: '[cut: memory map changed]',
} as const;
