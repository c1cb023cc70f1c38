/** What the collector listens on and keeps where nothing else is asked for. */
export const COLLECTOR_DEFAULTS = {
  grpcListen: '127.0.0.1:11000',
  httpListen: '127.0.0.1:4318',
  pageListen: '127.0.0.1:11080',
  maxMemoryBytes: 256 * 1024 * 1024,
  maxAgeMs: 60 * 60_000,
  maxDiskBytes: 10 * 1024 ** 3,
  maxSenderRate: 32 * 1024 * 1024,
  /** Of requests that arrive or are being stored, over all senders: four of the largest. */
  maxBytesInFlight: 128 * 1024 * 1024,
  maxForwardQueueBytes: 64 * 1024 * 1024,
  maxDiskAgeMs: 30 * 24 * 60 * 60_000,
} as const;
