/** What the servers that take requests share: who may send, how much at a time, and where it goes. */
import type { IncomingHttpHeaders } from 'node:http';
import { constants, type Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { type Access, OPEN_ACCESS } from '../net/access.ts';
import type { ByteBudget } from '../net/byte-budget.ts';
import type { ConnectionGate } from '../net/connection-gate.ts';
import type { Receiver } from './receiver.ts';

/** What a sender is asked to wait where nothing can be taken now. */
export const RETRY_AFTER_S = 5;

/** Of one connection; then it is cut. */
const MAX_REFUSED_CALLS = 100;

export interface IntakeOptions {
  receiver: Receiver;
  /** By default anyone may send. */
  access?: Access | undefined;
  /** Of all servers together. */
  budget: ByteBudget;
  gate?: ConnectionGate | undefined;
}

export class Intake {
  readonly receiver: Receiver;
  readonly budget: ByteBudget;
  readonly #access: Access;
  readonly #gate: ConnectionGate | undefined;
  readonly #refusedCalls = new WeakMap<Http2Session, number>();

  constructor({ receiver, access = OPEN_ACCESS, budget, gate }: IntakeOptions) {
    this.receiver = receiver;
    this.budget = budget;
    this.#access = access;
    this.#gate = gate;
  }

  allows(headers: IncomingHttpHeaders): boolean {
    return this.#access.allowsRequest({ headers });
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
