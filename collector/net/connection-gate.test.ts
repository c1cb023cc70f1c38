import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { ConnectionGate, type GateOptions } from './connection-gate.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

async function startGuarded(options: Partial<GateOptions>) {
  const notes: string[] = [];
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket.on('error', () => {})));
  const gate = new ConnectionGate({ note: (reason) => notes.push(reason), ...options });
  gate.guard(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(server, gate);
  const dial = async (): Promise<Socket> => {
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume();
    open.push({ close: () => socket.destroy() });
    await once(socket, 'connect');
    return socket;
  };
  return { server, gate, notes, accepted, dial };
}

it('cuts the oldest connection that proved nothing, and leaves those that did', async () => {
  const { gate, accepted, dial } = await startGuarded({ maxConnections: 4 });
  const first = await dial();
  await vi.waitFor(() => expect(accepted).toHaveLength(1));
  gate.prove(accepted[0]!);
  const idle = await dial();
  for (let i = 0; i < 5; i++) await dial();
  await vi.waitFor(() => expect(idle.destroyed).toBe(true));
  expect(first.destroyed).toBe(false);
  await vi.waitFor(() => expect(gate.stats()).toMatchObject({ connections: 3, maxConnections: 4, cut: 4 }));
});

it('cuts one that does not prove itself in time', async () => {
  const { gate, notes, dial } = await startGuarded({ unprovenMs: 50 });
  const socket = await dial();
  await vi.waitFor(() => expect(socket.destroyed).toBe(true));
  expect(gate.stats()).toMatchObject({ connections: 0, cut: 1 });
  expect(notes).toEqual(['no request was admitted on a connection for 0.05 s: cut']);
});

it('counts what the system could not accept, and goes on', async () => {
  const { server, gate, notes, dial } = await startGuarded({});
  server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE', syscall: 'accept' }));
  expect(gate.stats().failedAccepts).toBe(1);
  expect(notes).toEqual(['a connection could not be accepted (EMFILE): raise `ulimit -n`']);
  await dial();
});
