/** What a sender counts of itself; see otlp-metrics.ts for its form on the wire. */
export interface CounterReport {
  /** Attributes of the sender, such as `service.version` and `host.name`. */
  resource: Record<string, string>;
  startMs: number;
  timeMs: number;
  /** By name; whatever is not a finite number is left out of a request. */
  counters: Record<string, number>;
}
