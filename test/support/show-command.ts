/** `everyframe show …` run in the test's own process, so that what it throws is seen as it is. */
import { Command } from 'commander';
import { vi } from 'vitest';

/** What the command writes to standard output. */
export async function runShow(register: (show: Command) => void, ...args: string[]): Promise<string> {
  let written = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written += String(text);
    return true;
  });
  const program = new Command().exitOverride();
  register(program.command('show'));
  try {
    await program.parseAsync(['show', ...args], { from: 'user' });
  } finally {
    write.mockRestore();
  }
  return written;
}
