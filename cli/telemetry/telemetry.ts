/** `--telemetry otlp`: what agent and collector tell of themselves, through OpenTelemetry's SDK, which is loaded only then. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { packageRoot } from '../../agent/base/package-root.ts';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';
import { productVersion } from '../program/program.ts';
import type { OtlpTelemetry } from './otlp.ts';
import { isWanted, openSignal, SIGNALS } from './signals.ts';

/** A file of its own, beside the bundles: some of these run code that V8 kept, which can't `import()`. */
const SDK = 'build/telemetry/otlp.cjs';

/**
 * Sends until it is stopped. undefined where it was not asked for, or OTEL_SDK_DISABLED is `true`.
 *
 * @throws BadSetting for variables that say where to
 */
export function startTelemetry(
  kind: 'otlp' | undefined,
  part: 'agent' | 'collector',
  metrics: () => PrometheusMetric[],
  log: Logger,
  env: NodeJS.ProcessEnv = process.env,
): OtlpTelemetry | undefined {
  if (kind === undefined || env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return undefined;
  const links = new Map(
    SIGNALS.filter((signal) => isWanted(signal, env)).map((signal) => [signal, openSignal(signal, env)]),
  );
  const load = createRequire(import.meta.url);
  const sdk = load(join(packageRoot(), SDK)) as typeof import('./otlp.ts');
  const serviceName = `everyframe-${part}`;
  return sdk.startOtlp({ serviceName, version: productVersion(), links, metrics, log, env });
}
