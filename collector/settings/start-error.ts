/** The collector can't start, for a reason that its user can change. */
export class CollectorStartError extends Error {
  override name = 'CollectorStartError';
}
