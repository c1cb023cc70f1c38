/** What the servers that take requests share: who may send, how much at a time, and where it goes. */
import type { IncomingHttpHeaders } from 'node:http';
import { constants, type Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { type Access, OPEN_ACCESS } from '../net/access.ts';
import type { ByteBudget } from '../net/byte-budget.ts';
import type { ConnectionGate } from '../net/connection-gate.ts';
import type { Receiver } from './receiver.ts';
import type { Receivers } from './receivers.ts';

/** What a sender is asked to wait where nothing can be taken now. */
export const RETRY_AFTER_S = 5;

/** Of one connection; then it is cut. */
const MAX_REFUSED_CALLS = 100;

export interface IntakeOptions {
  receivers: Receivers;
  /** By default anyone may send. */
  access?: Access | undefined;
  /** Of all servers together. */
  budget: ByteBudget;
  gate?: ConnectionGate | undefined;
}

export class Intake {
  readonly budget: ByteBudget;
  readonly #receivers: Receivers;
  readonly #access: Access;
  readonly #gate: ConnectionGate | undefined;
  readonly #refusedCalls = new WeakMap<Http2Session, number>();

  constructor({ receivers, access = OPEN_ACCESS, budget, gate }: IntakeOptions) {
    this.#receivers = receivers;
    this.budget = budget;
    this.#access = access;
    this.#gate = gate;
  }

  /** Undefined for who shows no right token. */
  receiverFor({ authorization }: IncomingHttpHeaders): Receiver | undefined {
    const tenant = this.#access.tenantOf(authorization);
    return tenant === undefined ? undefined : this.#receivers.of(tenant);
  }

  /** Counts what is refused before it is decoded; `receiver`: whose it is, where that is known. */
  refuse(reason: string, receiver?: Receiver): void {
    (receiver ?? this.#receivers).refuse(reason);
  }

  prove(socket: Socket | undefined): void {
    this.#gate?.prove(socket);
  }

  /** Who goes on after so many answers is not listened to. */
  noteRefusedCall(session: Http2Session | undefined): void {
    if (session === undefined || session.destroyed) return;
    const refused = (this.#refusedCalls.get(session) ?? 0) + 1;
    this.#refusedCalls.set(session, refused);
    if (refused === MAX_REFUSED_CALLS) {
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      session.destroy();
    }
  }
}
