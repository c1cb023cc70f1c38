import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../tracer/package-root.ts';

/** OTLP's instrumentation scope: who made the data. */
export interface Scope {
  scopeName: string;
  scopeVersion: string;
}

export function readScope(): Scope {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return { scopeName: 'everyframe', scopeVersion: version };
}
