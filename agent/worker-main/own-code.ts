/** The code that V8 has made of the worker's bundle, for scripts/write-worker-code.ts: worker-start.ts takes it. */
import type { WorkHandler } from '../workers/protocol.ts';

export interface OwnCode {
  /** Of what was called up to now. */
  bytes: Uint8Array;
  /** Whether this worker was started with such code. */
  wasTaken: boolean;
}

/** Given to the bundle by worker-start.ts. */
declare const createOwnCode: () => OwnCode;

export const createCodeHandler = (): WorkHandler<undefined, OwnCode> => ({ handle: () => createOwnCode() });
