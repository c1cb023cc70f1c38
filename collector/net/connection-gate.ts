/**
 * How many connections the collector's servers hold, and for how long those that have not shown a right to be there.
 * A connection is proven by its first request that was admitted: with the right token where one is needed.
 */

import { readFileSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { GateStats } from '../status/status.ts';

/** Of connections that were not proven, over all servers. */
const MAX_UNPROVEN = 256;
/** One that does not prove itself in this time is cut, TLS handshake included. */
const UNPROVEN_MS = 30_000;
/** Whatever the number of descriptors. */
const MAX_CONNECTIONS = 4096;
/** Descriptors that are not for connections: the store, symbol files, the runtime's own, what the log goes to. */
const OTHER_DESCRIPTORS = 44;
const MIN_CONNECTIONS = 8;

export interface GateOptions {
  maxConnections?: number;
  unprovenMs?: number;
  /** Each connection that was cut or could not be accepted, with the reason. */
  note: (reason: string) => void;
}

export class ConnectionGate {
  readonly maxConnections: number;
  readonly #maxUnproven: number;
  readonly #unprovenMs: number;
  readonly #note: (reason: string) => void;
  /** The oldest first. */
  readonly #unproven = new Map<Socket, number>();
  /** That which was used longest ago first. */
  readonly #proven = new Set<Socket>();
  /** What was accepted, of the sockets that TLS servers answer on. */
  readonly #raw = new WeakMap<Socket, Socket>();
  readonly #timer: NodeJS.Timeout;
  #cut = 0;
  #failedAccepts = 0;

  constructor({ maxConnections = affordableConnections(), unprovenMs = UNPROVEN_MS, note }: GateOptions) {
    this.maxConnections = maxConnections;
    this.#maxUnproven = Math.min(MAX_UNPROVEN, Math.ceil(maxConnections / 2));
    this.#unprovenMs = unprovenMs;
    this.#note = note;
    this.#timer = setInterval(() => this.#cutOld(), Math.min(1000, unprovenMs)).unref();
  }

  stats(): GateStats {
    return {
      connections: this.#unproven.size + this.#proven.size,
      maxConnections: this.maxConnections,
      cut: this.#cut,
      failedAccepts: this.#failedAccepts,
    };
  }

  /** Before the server listens. */
  guard(server: Server): void {
    server.prependListener('connection', (socket: Socket) => this.#admit(socket));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.syscall !== 'accept') return;
      this.#failedAccepts++;
      this.#note(`a connection could not be accepted (${error.code}): raise \`ulimit -n\``);
    });
  }

  /** The connection had a request that was admitted. */
  prove(socket: Socket | TLSSocket | undefined): void {
    const raw = socket === undefined ? undefined : this.#find(socket);
    if (raw === undefined) return;
    this.#unproven.delete(raw);
    this.#proven.delete(raw);
    this.#proven.add(raw);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #admit(socket: Socket): void {
    socket.once('close', () => {
      this.#unproven.delete(socket);
      this.#proven.delete(socket);
    });
    this.#unproven.set(socket, performance.now());
    const [oldest] = this.#unproven.keys();
    if (this.#unproven.size > this.#maxUnproven)
      this.#end(oldest!, `more than ${this.#maxUnproven} connections without an admitted request`);
    if (this.#unproven.size + this.#proven.size <= this.maxConnections) return;
    const [idle] = this.#unproven.size > 1 ? this.#unproven.keys() : this.#proven;
    this.#end(idle ?? socket, `more than ${this.maxConnections} connections`);
  }

  #find(socket: Socket): Socket | undefined {
    const known = this.#raw.get(socket) ?? socket;
    if (this.#unproven.has(known) || this.#proven.has(known)) return known;
    for (const sockets of [this.#unproven.keys(), this.#proven.keys()])
      for (const raw of sockets) {
        if (raw.remotePort !== socket.remotePort || raw.remoteAddress !== socket.remoteAddress) continue;
        this.#raw.set(socket, raw);
        return raw;
      }
    return undefined;
  }

  #cutOld(): void {
    const oldestMs = performance.now() - this.#unprovenMs;
    for (const [socket, sinceMs] of this.#unproven) {
      if (sinceMs > oldestMs) break;
      this.#end(socket, `no request was admitted on a connection for ${this.#unprovenMs / 1000} s`);
    }
  }

  #end(socket: Socket, reason: string): void {
    this.#cut++;
    this.#note(`${reason}: cut`);
    this.#unproven.delete(socket);
    this.#proven.delete(socket);
    socket.destroy();
  }
}

/** As many as this process may have descriptors for. */
function affordableConnections(): number {
  return Math.max(MIN_CONNECTIONS, Math.min(MAX_CONNECTIONS, maxDescriptors() - OTHER_DESCRIPTORS));
}

function maxDescriptors(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined ? MAX_CONNECTIONS : Number(limit);
  } catch {
    return MAX_CONNECTIONS;
  }
}
