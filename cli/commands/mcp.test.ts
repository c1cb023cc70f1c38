import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

// knip takes a path in one piece for an import
const PROGRAM = ['bin', 'everyframe'].join('/');

interface Reply {
  id: number | null;
  result?: {
    serverInfo?: { version: string };
    tools?: { name: string; inputSchema: { additionalProperties?: boolean } }[];
    content?: { text: string }[];
    isError?: boolean;
  };
  error?: { code: number };
}

const request = (id: number, method: string, params: object = {}): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

it('speaks its protocol: one version, every tool, errors by their codes', () => {
  const clientInfo = { name: 'test', version: '1' };
  const lines = [
    request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo }),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{bad',
    '{"a":1}',
    request(2, 'tools/list'),
    request(3, 'nope'),
    request(4, 'tools/call', { name: 'timeline', arguments: {} }),
    request(5, 'tools/call', { name: 'no_such_tool', arguments: {} }),
    request(6, 'tools/call', { name: 'what_uses_cpu', arguments: { type: 'off_cpu', idle: 'hide' } }),
    request(7, 'tools/call', { name: 'is_the_data_complete' }),
  ];
  // nothing listens there
  const { stdout } = spawnSync(PROGRAM, ['mcp', '--url', '127.0.0.1:1'], {
    encoding: 'utf8',
    input: `${lines.join('\n')}\n`,
  });
  const replies = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Reply);
  const byId = (id: number): Reply => replies.find((reply) => reply.id === id)!;
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(byId(1).result!.serverInfo!.version).toBe(version);
  expect(
    byId(2)
      .result!.tools!.map(({ name }) => name)
      .sort(),
  ).toEqual([
    ...[
      'call_tree',
      'is_the_data_complete',
      'timeline',
      'what_changed',
      'what_is_sampled',
      'what_uses_cpu',
      'what_waits',
      'who_calls',
    ],
  ]);
  expect(replies.filter(({ id }) => id === null).map(({ error }) => error!.code)).toEqual([-32700, -32600]);
  expect(byId(3).error!.code).toBe(-32601);
  expect(byId(5)).toMatchObject({
    error: { code: -32602, message: expect.stringMatching(/what_is_sampled/) },
  });
  expect(byId(6)).toMatchObject({
    error: {
      code: -32602,
      message: expect.stringMatching(/what_uses_cpu: "idle"; there are range, .*transform, limit/),
    },
  });
  expect(byId(2).result!.tools!.every((tool) => tool.inputSchema.additionalProperties === false)).toBe(true);
  expect(byId(7).result!.isError).toBe(true);
  expect(byId(4).result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/no collector answers/) }],
  });
});
