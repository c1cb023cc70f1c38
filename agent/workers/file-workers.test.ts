import { expect, test } from 'vitest';
import type { OwnCode } from '../worker-main/own-code.ts';
import { createFileWorkers } from './file-workers.ts';
import { WorkerClient } from './worker-client.ts';

test('a worker starts with the code that V8 made of it when the product was built', async () => {
  const workers = createFileWorkers();
  const client = new WorkerClient<undefined, OwnCode>(workers, {
    kind: 'own-code',
    maxCpuMs: 10_000,
    maxWaitMs: 60_000,
  });
  const { wasTaken } = await client.request(undefined);
  await workers.stop();
  expect(wasTaken).toBe(true);
});
