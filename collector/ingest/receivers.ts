import { SOLE_TENANT } from '../settings/tenants.ts';
import type { Receiver } from './receiver.ts';
import { ReceiverStats } from './receiver-stats.ts';

/** Where requests go: to the receiver of the tenant whose token they come with. */
export class Receivers {
  /** What came with nobody's token; with one receiver for all it is in that one's. */
  readonly unauthenticated: ReceiverStats;
  readonly #byTenant: ReadonlyMap<string, Receiver>;
  readonly #now: () => number;

  constructor(byTenant: ReadonlyMap<string, Receiver>, now: () => number) {
    this.#byTenant = byTenant;
    this.#now = now;
    this.unauthenticated = byTenant.get(SOLE_TENANT)?.stats ?? new ReceiverStats();
  }

  of(tenant: string): Receiver | undefined {
    return this.#byTenant.get(tenant);
  }

  /** Counts a connection or request of which nobody knows whose it is. */
  refuse(reason: string): void {
    this.unauthenticated.refuse(reason, this.#now());
  }
}
