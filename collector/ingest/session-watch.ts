import type { ServerHttp2Session } from 'node:http2';

/** Agents that lost their network are noticed after a minute, not after hours. */
const PING_MS = 60_000;
const PING_TIMEOUT_MS = 20_000;

/** Ends an HTTP/2 connection that answers no ping, and reports one that spoke something else. */
export function watchSession(session: ServerHttp2Session, note: (reason: string) => void): void {
  let answered: NodeJS.Timeout | undefined;
  const timer = setInterval(() => {
    if (session.destroyed || session.closed) return;
    answered ??= setTimeout(() => session.destroy(), PING_TIMEOUT_MS).unref();
    session.ping((error) => {
      if (error !== null) return;
      clearTimeout(answered);
      answered = undefined;
    });
  }, PING_MS).unref();
  session.once('close', () => {
    clearInterval(timer);
    clearTimeout(answered);
  });
  session.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_HTTP2_ERROR')
      note(
        'a connection to the gRPC port did not speak HTTP/2: senders of OTLP over HTTP use the other port, and TLS needs ' +
          '--tls-cert here',
      );
  });
}
