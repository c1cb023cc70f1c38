/** What a collector started with --child tells its parent once everything listens. */
export interface CollectorReady {
  /** `host:port` for an agent. */
  grpc: string;
  /** URL of the page. */
  page: string;
}
