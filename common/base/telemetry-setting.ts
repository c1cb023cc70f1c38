import * as v from 'valibot';
import type { Setting } from './setting.ts';

export const TELEMETRY_SETTING: Setting = {
  flag: 'telemetry',
  value: 'otlp',
  help: "send own metrics, logs and traces with OpenTelemetry's SDK to where OTEL_EXPORTER_OTLP_… says (default: none)",
};

export const telemetryKind = v.optional(
  v.picklist(['otlp'], ({ input }) => `--telemetry is ${input}: give otlp, or leave it out`),
);
