/** `everyframe mcp`: the query API as tools for a language model, over stdio. */
import type { Command } from 'commander';
import { type Answered, pageLink } from './page-link.ts';
import { ask, DEFAULT_URL, type Query } from './query-client.ts';
import {
  type Basis,
  callersText,
  diffText,
  type HealthAnswer,
  healthText,
  type TreeColumns,
  topText,
} from './query-text.ts';

const DEFAULT_LINES = 25;

export function registerMcp(program: Command): void {
  program
    .command('mcp')
    .description('serve the query API to a language model (MCP over stdio)')
    .option('--url <URL>', 'the collector', DEFAULT_URL)
    .action(({ url }: { url: string }) => serve(url));
}

async function serve(url: string): Promise<void> {
  // Loaded here: no other command needs it, and it takes a while.
  const [{ McpServer }, { StdioServerTransport }, { z }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/mcp.js'),
    import('@modelcontextprotocol/sdk/server/stdio.js'),
    import('zod'),
  ]);
  const server = new McpServer({ name: 'everyframe', version: '1.0.0' });
  const filter = {
    range: z.string().optional().describe('length of time up to now: 60s, 15m (default), 6h, 7d, or all'),
    from: z.string().optional().describe('start instead of range: ISO 8601, or -30m'),
    to: z.string().optional().describe('end; default: now'),
    where: z
      .string()
      .optional()
      .describe(
        'filter, all terms hold: process=node,python3 host!=db1 thread~"^worker" cpu=0 kind=kernel deployment.environment=prod',
      ),
  };
  const limit = z.number().int().min(1).max(200).default(DEFAULT_LINES).describe('lines of the answer');
  const readOnly = { readOnlyHint: true, openWorldHint: false };

  const answer = async <T extends Answered>(path: string, query: Query, toText: (value: T) => string[]) => {
    try {
      const value = await ask<T>(url, path, query);
      const text = [...toText(value), `Page: ${pageLink(url, query, value)}`].join('\n');
      return { content: [{ type: 'text' as const, text }] };
    } catch (error) {
      return { content: [{ type: 'text' as const, text: (error as Error).message }], isError: true };
    }
  };

  server.registerTool(
    'what_uses_cpu',
    {
      description:
        'Functions that use CPU time, on the whole machine or in what the filter names. self: in the function itself; ' +
        'total: also in what it calls. Begin here.',
      inputSchema: { ...filter, limit },
      annotations: readOnly,
    },
    (query) => answer<Parameters<typeof topText>[0]>('top', query, topText),
  );
  server.registerTool(
    'who_calls',
    {
      description: 'Callers of a function up to the process, and what it calls, with shares of its samples.',
      inputSchema: {
        ...filter,
        limit,
        function: z.string().describe('exact name, as what_uses_cpu shows it'),
      },
      annotations: readOnly,
    },
    ({ limit: lines, ...query }) =>
      answer<
        Basis & { function: string; functionSamples: number; callers: TreeColumns; callees: TreeColumns }
      >('callers', query, (value) => callersText(value, lines)),
  );
  server.registerTool(
    'what_changed',
    {
      description:
        'Compares A (the base_ parameters) with B (the others): functions whose share of the CPU time changed most. ' +
        'Give both a time, or a filter, or both.',
      inputSchema: {
        ...filter,
        limit,
        base_range: filter.range,
        base_from: filter.from,
        base_to: filter.to,
        base_where: filter.where.describe('filter of A; default: where'),
      },
      annotations: readOnly,
    },
    (query) =>
      answer<Parameters<typeof diffText>[0]>(
        'diff',
        { ...query, base_where: query.base_where ?? query.where },
        diffText,
      ),
  );
  server.registerTool(
    'is_the_data_complete',
    {
      description:
        'How far the data can be trusted: samples received, rejected and dropped with reasons, stacks that are whole ' +
        'and named, senders, worst processes. Ask before drawing conclusions.',
      inputSchema: { ...filter, limit },
      annotations: readOnly,
    },
    ({ limit: lines, ...query }) =>
      answer<HealthAnswer>('health', query, (value) => healthText(value, lines)),
  );
  await server.connect(new StdioServerTransport());
}
