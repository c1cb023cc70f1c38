import type { Command } from 'commander';

/** What samples this machine. */
export const samplingCommands = (program: Command): Record<string, () => Promise<void>> => ({
  run: async () => (await import('./run.ts')).registerRun(program),
  agent: async () => (await import('./agent.ts')).registerAgent(program),
  record: async () => (await import('./record.ts')).registerRecord(program),
  top: async () => (await import('./top.ts')).registerTop(program),
});
