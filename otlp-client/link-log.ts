/** Says when the way to the receiver changes its state, never what became of a single request. */
export interface SenderLog {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What a person can change where the receiver can't be spoken to. */
export interface LinkHints {
  /** How to go without TLS. */
  plaintext: string;
  /** Flag that names certificate authorities. */
  authority: string;
  /** Flags that name what identifies the sender. */
  credentials: string;
}

/** A failure as the exporter shows it. */
export interface Failure {
  code: string;
  message: string;
}

type LinkState = 'new' | 'up' | 'unreachable' | 'refused';

/** A receiver that changes its mind with every request gets a line of each kind a minute. */
const QUIET_MS = 60_000;

function refusedHint(code: string, { credentials }: LinkHints): string {
  if (code === 'UNIMPLEMENTED')
    return '; nothing takes profiles at this port: enable the receiver and its profiles pipeline';
  return code === 'UNAUTHENTICATED' || code === 'PERMISSION_DENIED' ? `; check ${credentials}` : '';
}

function unreachableHint(message: string, hints: LinkHints): string {
  if (/wrong version number|packet length too long/i.test(message)) {
    return `; it seems to speak no TLS: ${hints.plaintext}`;
  }
  if (/certificate has expired|certificate is not yet valid/i.test(message))
    return '; renew its certificate, or set the clock of this machine right';
  if (/ALTNAME_INVALID|altnames/i.test(message))
    return '; give a name or address that its certificate is for';
  // grpc-js says no more where the other side closes at once
  if (/^Failed to connect \(|^read ECONNRESET|socket hang up/.test(message))
    return '; it closed the connection at once: if it speaks TLS, write https://HOST:PORT';
  if (/certificate|self-signed/i.test(message)) {
    return `; name the authority that signed its certificate with ${hints.authority}`;
  }
  return '';
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

export class LinkLog {
  readonly #address: string;
  readonly #log: SenderLog;
  readonly #hints: LinkHints;
  readonly #now: () => number;
  #state: LinkState = 'new';
  #code = '';
  #sinceMs = 0;
  readonly #saidAtMs = new Map<string, number>();

  /** `now`: milliseconds of a clock that never steps. */
  constructor(
    address: string,
    log: SenderLog,
    hints: LinkHints,
    now: () => number = () => performance.now(),
  ) {
    this.#address = address;
    this.#log = log;
    this.#hints = hints;
    this.#now = now;
  }

  up(): void {
    if (this.#state === 'up') return;
    const lasted = seconds(this.#now() - this.#sinceMs);
    if (this.#state === 'new') this.#log.info(`profiles arrive at ${this.#address}`);
    else if (this.#state === 'unreachable')
      this.#say('back', 'info', `${this.#address} is back after ${lasted}`);
    else this.#say('taken', 'info', `${this.#address} takes profiles again after ${lasted}`);
    this.#enter('up', '');
  }

  unreachable(failure: Failure): void {
    if (this.#state === 'unreachable') return;
    this.#enter('unreachable', failure.code);
    const why = `${failure.code}: ${failure.message}${unreachableHint(failure.message, this.#hints)}`;
    this.#say(
      'unreachable',
      'warn',
      `${this.#address} can't be reached (${why}): profiles wait in memory and are sent when it is back, the oldest are dropped first`,
    );
  }

  refused(failure: Failure): void {
    if (this.#state === 'refused' && this.#code === failure.code) return;
    this.#enter('refused', failure.code);
    this.#say(
      `refused ${failure.code}`,
      'error',
      `${this.#address} refuses profiles (${failure.code}: ${failure.message}): they are dropped${refusedHint(failure.code, this.#hints)}`,
    );
  }

  /** The receiver took a request, but not all of it, or has something to say about it. */
  partial(rejectedProfiles: number, message: string): void {
    const what = rejectedProfiles > 0 ? `rejects ${rejectedProfiles} of the profiles sent` : 'warns';
    this.#say('partial', 'warn', `${this.#address} ${what}: ${message || 'it gives no reason'}`);
  }

  tooLarge(bytes: number, message: string): void {
    this.#say(
      'too large',
      'warn',
      `${this.#address} takes no request of ${bytes} bytes (${message}): smaller ones are sent from now on`,
    );
  }

  #enter(state: LinkState, code: string): void {
    this.#state = state;
    this.#code = code;
    this.#sinceMs = this.#now();
  }

  #say(kind: string, level: keyof SenderLog, message: string): void {
    const now = this.#now();
    if (now - (this.#saidAtMs.get(kind) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    this.#saidAtMs.set(kind, now);
    this.#log[level](message);
  }
}
