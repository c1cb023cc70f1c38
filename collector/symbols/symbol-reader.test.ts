/** The real worker thread: needs the compiled dist/. */
import { expect, it } from 'vitest';
import { SymbolError, SymbolReader } from './symbol-reader.ts';

it('refuses what waits when it is stopped, and starts no worker for it', async () => {
  const reader = new SymbolReader();
  const asked = Array.from({ length: 3 }, () =>
    reader.ask({ kind: 'inspect', path: process.execPath }).catch((error: unknown) => error),
  );
  // the first one is under way
  await Promise.resolve();
  await reader.stop();
  const answers = await Promise.all(asked);
  for (const answer of answers) expect(answer).toBeInstanceOf(SymbolError);
  expect((answers[2] as SymbolError).message).toBe('the collector is stopping');
});
