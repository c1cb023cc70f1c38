import { describe, expect, it } from 'vitest';
import { LinkLog } from './link-log.ts';

const HINTS = { plaintext: 'give --plain', authority: '--tls-ca', credentials: '--headers-file' };

function setUp() {
  const lines: string[] = [];
  let nowMs = 0;
  const log = {
    info: (text: string) => lines.push(`info ${text}`),
    warn: (text: string) => lines.push(`warn ${text}`),
    error: (text: string) => lines.push(`error ${text}`),
  };
  const link = new LinkLog('c:1', log, HINTS, () => nowMs);
  return {
    link,
    lines,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const down = { code: 'UNAVAILABLE', message: 'connect ECONNREFUSED' };

describe('LinkLog', () => {
  it('says how long the receiver was away', () => {
    const { link, lines, pass } = setUp();
    link.up();
    link.unreachable(down);
    pass(2500);
    link.up();
    expect(lines[2]).toBe('info c:1 is back after 2.5 s');
  });

  it('gives a receiver that flaps a few lines a minute', () => {
    const { link, lines, pass } = setUp();
    for (let i = 0; i < 120; i++) {
      link.unreachable(down);
      link.up();
      link.refused({ code: 'INTERNAL', message: 'x' });
      link.up();
      link.partial(1, 'y');
      pass(1000);
    }
    expect(lines).toHaveLength(10);
  });

  it('shows a new reason for refusing', () => {
    const { link, lines } = setUp();
    link.refused({ code: 'UNAUTHENTICATED', message: 'no token' });
    link.refused({ code: 'UNAUTHENTICATED', message: 'no token at all' });
    link.refused({ code: 'PERMISSION_DENIED', message: 'not you' });
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('--headers-file');
  });

  it.each([
    ['write EPROTO ...:SSL routines:ssl3_get_record:wrong version number', 'give --plain'],
    ['self-signed certificate in certificate chain', '--tls-ca'],
    ['unable to verify the first certificate', '--tls-ca'],
    ['certificate has expired', 'set the clock'],
    [
      "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames",
      'give a name',
    ],
    ['Failed to connect (2026-11-26T15:19:03.720Z)', 'write https://HOST:PORT'],
  ])('says what to do about "%s"', (message, flag) => {
    const { link, lines } = setUp();
    link.unreachable({ code: 'UNAVAILABLE', message });
    expect(lines[0]).toContain(flag);
  });
});
