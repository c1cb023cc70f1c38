import { afterEach, expect, it } from 'vitest';
import { Systemd } from './systemd.ts';

const open: Systemd[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

function start(env: Record<string, string>) {
  const sent: string[] = [];
  const systemd = new Systemd(env, (path, text) => {
    sent.push(`${path} ${text}`);
    return 0;
  });
  open.push(systemd);
  return { systemd, sent, env };
}

it('says what a service of Type=notify says, and keeps that from its children', () => {
  const { systemd, sent, env } = start({ NOTIFY_SOCKET: '/n', A: '1' });
  systemd.ready('up\nREADY=0');
  systemd.reloading();
  systemd.stopping();
  expect(sent[0]).toBe('/n READY=1\nSTATUS=up READY=0');
  expect(sent[1]).toMatch(/^\/n RELOADING=1\nMONOTONIC_USEC=\d+$/);
  expect(sent[2]).toMatch(/STOPPING=1/);
  expect(env).toEqual({ A: '1' });
});

it('feeds the watchdog that is meant for this process, twice in its time', async () => {
  const { sent } = start({ NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '20000', WATCHDOG_PID: String(process.pid) });
  const other = start({ NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '20000', WATCHDOG_PID: '1' });
  await expect.poll(() => sent.length).toBeGreaterThan(2);
  expect(sent[0]).toBe('/n WATCHDOG=1');
  expect(other.sent).toEqual([]);
});

it('says nothing where nobody listens', () => {
  const { systemd, sent } = start({});
  systemd.ready('up');
  expect(sent).toEqual([]);
});
