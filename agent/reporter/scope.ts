import { productVersion } from '../base/product-version.ts';

/** OTLP's instrumentation scope: who made the data. */
export interface Scope {
  scopeName: string;
  scopeVersion: string;
}

export const readScope = (): Scope => ({ scopeName: 'everyframe', scopeVersion: productVersion() });
