import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    silent: 'passed-only',
    reporters: ['default', './test/support/skip-reasons.ts'],
    globalSetup: 'test/support/own-cache.ts',
    projects: [
      {
        test: {
          name: 'unit',
          include: ['{agent,collector,common,otlp-client,cli,scripts}/**/*.test.ts'],
          // Only what hangs should end here: other work may have the machine for minutes.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
        },
      },
      {
        test: {
          name: 'live',
          include: ['test/**/*.test.ts'],
          // Needs an engine of 500 MiB: npm run test:clickhouse.
          exclude: process.env['CHDB_FOLDER'] === undefined ? ['test/clickhouse/**'] : [],
          // Live tests share the machine's CPUs and perf events: one file at a time.
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          expect: { poll: { timeout: 30_000 } },
        },
      },
    ],
  },
});
