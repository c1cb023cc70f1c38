/** `everyframe mcp`: the query API as tools for a language model, over stdio. */
import type { Command } from 'commander';
import { TRANSFORMS } from '../../common/profile/filters/transform-list.ts';
import { OFF_CPU } from '../../common/profile/model/thread-types.ts';
import { addExamples } from '../program/examples.ts';
import { productVersion } from '../program/program.ts';
import { explainNothing } from '../query/other-types.ts';
import { type Answered, pageLink } from '../query/page-link.ts';
import { baseOf } from '../query/query-base.ts';
import {
  addCollectorFlags,
  ask,
  type CollectorFlags,
  collectorUrl,
  type Query,
} from '../query/query-client.ts';
import {
  type Basis,
  callersText,
  diffText,
  type HealthAnswer,
  healthText,
  type TimelineAnswer,
  type TypesAnswer,
  timelineText,
  topText,
  treeText,
  typesText,
} from '../query/query-text.ts';
import { refuseUnknown } from '../query/unknown-function.ts';
import { askWaits, waitsText } from '../query/waits.ts';

const DEFAULT_LINES = 25;
const TIMELINE_STEPS = 60;

export function registerMcp(program: Command): void {
  const command = program
    .command('mcp')
    .description('serve the query API to a language model (MCP over stdio)')
    .action((collector: CollectorFlags) => {
      collectorUrl(collector);
      return serve(collector);
    });
  addExamples(addCollectorFlags(command), [
    [
      'claude mcp add everyframe -- everyframe mcp',
      'adds it to Claude Code; docs/mcp.md says how for others',
    ],
    ['everyframe mcp --url server:11080', 'the collector of another machine'],
  ]);
}

/** JSON-RPC's codes for a line that is not JSON, and for JSON that is not one of its messages. */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
/** What the protocol wants where there is no such tool, or no such argument of it. */
const INVALID_PARAMS = -32602;

/** The library drops lines that it can't read; whoever sent one waits for an answer. */
function answerBadLine(error: Error): void {
  const code =
    error instanceof SyntaxError ? PARSE_ERROR : error.name === 'ZodError' ? INVALID_REQUEST : undefined;
  if (code === undefined) return;
  const message =
    code === PARSE_ERROR ? `Parse error: ${error.message}` : 'Invalid Request: not a JSON-RPC 2.0 message';
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } })}\n`);
}

type Transport = InstanceType<
  typeof import('@modelcontextprotocol/sdk/server/stdio.js').StdioServerTransport
>;

/** Names of tools, with those of their arguments. */
type Tools = Map<string, readonly string[]>;

/** An error of the protocol: the library answers with a tool's error, which a model would take for an answer. */
function refuseUnknownNames(transport: Transport, tools: Tools): void {
  const { onmessage } = transport;
  transport.onmessage = (message) => {
    const isCall = 'id' in message && 'method' in message && message.method === 'tools/call';
    const text = isCall
      ? unknownName(message.params?.['name'], message.params?.['arguments'], tools)
      : undefined;
    if (!isCall || text === undefined) {
      onmessage?.(message);
      return;
    }
    const error = { code: INVALID_PARAMS, message: text };
    void transport.send({ jsonrpc: '2.0', id: message.id, error });
  };
}

function unknownName(name: unknown, given: unknown, tools: Tools): string | undefined {
  if (typeof name !== 'string') return undefined;
  const known = tools.get(name);
  if (known === undefined) return `Unknown tool: "${name}"; there are ${[...tools.keys()].join(', ')}`;
  const unknown = Object.keys(given ?? {}).filter((one) => !known.includes(one));
  if (unknown.length === 0) return undefined;
  return `Unknown argument of ${name}: ${unknown.map((one) => `"${one}"`).join(', ')}; there are ${known.join(', ')}`;
}

type Callers = Parameters<typeof callersText>[0];

async function answer<T extends Answered>(
  collector: CollectorFlags,
  path: string,
  query: Query,
  toText: (value: T) => string[] | Promise<string[]>,
) {
  try {
    const value = await ask<T>(collector, path, query);
    const text = [
      ...(await toText(value)),
      ...(await explainNothing(collector, query, value as Partial<Basis>)),
      `Page: ${pageLink(collector, path, query, value)}`,
    ].join('\n');
    return { content: [{ type: 'text' as const, text }] };
  } catch (error) {
    return { content: [{ type: 'text' as const, text: (error as Error).message }], isError: true };
  }
}

type Zod = typeof import('zod').z;

/** What tools take; `takes` notes it under a tool's name. */
function strictInputs(z: Zod, tools: Tools) {
  const text = (meaning: string) => z.string().optional().describe(meaning);
  return {
    filter: {
      range: text('length of time up to now: 60s, 15m (default), 6h, 7d, or all'),
      from: text('start instead of range: ISO 8601, or -30m'),
      to: text('end; default: now'),
      where: text(
        'filter, all terms hold: process=node,python3 host!=db1 thread~"^worker" cpu=0 kind=kernel deployment.environment=prod; also trace_id and span_id',
      ),
      type: text(
        'type of the samples, as what_is_sampled lists them: cpu (default), off_cpu/nanoseconds, alloc_space/bytes, …',
      ),
    },
    limit: z.number().int().min(1).max(200).default(DEFAULT_LINES).describe('lines of the answer'),
    transform: text(
      `changes of the stacks, from left to right, of ${Object.keys(TRANSFORMS).join(', ')}: focus=main hide~^std:: only=mine`,
    ),
    text,
    z,
    takes<S extends import('zod').ZodRawShape>(tool: string, shape: S) {
      tools.set(tool, Object.keys(shape));
      return z.strictObject(shape);
    },
  };
}

type Inputs = ReturnType<typeof strictInputs>;

async function serve(collector: CollectorFlags): Promise<void> {
  // Loaded here: no other command needs it, and it takes a while.
  const [{ McpServer }, { StdioServerTransport }, { z }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/mcp.js'),
    import('@modelcontextprotocol/sdk/server/stdio.js'),
    import('zod'),
  ]);
  const server = new McpServer({ name: 'everyframe', version: productVersion() });
  server.server.onerror = answerBadLine;
  const tools: Tools = new Map();
  registerTypes(server, strictInputs(z, tools), collector);
  registerStacks(server, strictInputs(z, tools), collector);
  registerComparisons(server, strictInputs(z, tools), collector);
  const transport = new StdioServerTransport();
  await server.connect(transport);
  refuseUnknownNames(transport, tools);
}

type Server = InstanceType<typeof import('@modelcontextprotocol/sdk/server/mcp.js').McpServer>;
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

function registerStacks(server: Server, inputs: Inputs, collector: CollectorFlags): void {
  const { filter, limit, transform, takes, z } = inputs;
  const annotations = READ_ONLY;
  server.registerTool(
    'what_uses_cpu',
    {
      description:
        'Functions that use CPU time, on the whole machine or in what the filter names; with type those that wait, ' +
        'allocate or hold memory. self: in the function itself; total: also in what it calls. Begin here.',
      inputSchema: takes('what_uses_cpu', { ...filter, transform, limit }),
      annotations,
    },
    (query) => answer<Parameters<typeof topText>[0]>(collector, 'top', query, topText),
  );
  server.registerTool(
    'what_waits',
    {
      description:
        'What threads wait for (locks, disks, network, sleep, a CPU), exactly, and which processes or threads wait ' +
        'most; only where the agent runs with --off-cpu. Then ask what_uses_cpu with type=off_cpu/nanoseconds and ' +
        'where=thread.state=blocked:lock for the functions.',
      inputSchema: takes('what_waits', {
        ...{ range: filter.range, from: filter.from, to: filter.to, where: filter.where, limit },
        by: z.string().optional().describe('label of the groups: process (default), thread, service, …'),
      }),
      annotations,
    },
    async ({ by, limit: lines, ...query }) => {
      try {
        const found = await askWaits(collector, query, by, lines);
        const link = pageLink(collector, 'waits', { ...query, type: OFF_CPU, by }, found);
        const text = [...waitsText(found), `Page: ${link}`].join('\n');
        return { content: [{ type: 'text' as const, text }] };
      } catch (error) {
        return { content: [{ type: 'text' as const, text: (error as Error).message }], isError: true };
      }
    },
  );
  server.registerTool(
    'who_calls',
    {
      description: 'Callers of a function up to the process, and what it calls, with shares of its samples.',
      inputSchema: takes('who_calls', {
        ...filter,
        ...{ transform, limit },
        function: z.string().describe('exact name, as what_uses_cpu shows it'),
      }),
      annotations,
    },
    ({ limit: lines, ...query }) =>
      answer<Callers>(collector, 'callers', query, async (value) => {
        await refuseUnknown(collector, query, value);
        return callersText(value, lines);
      }),
  );
  server.registerTool(
    'call_tree',
    {
      description:
        'The largest branches of all stacks as an indented tree, with the process first: how the CPU time is spent from the top down.',
      inputSchema: takes('call_tree', { ...filter, transform, limit }),
      annotations,
    },
    ({ limit: lines, ...query }) =>
      answer<Parameters<typeof treeText>[0]>(collector, 'tree', query, (value) => treeText(value, lines)),
  );
}

function registerTypes(server: Server, inputs: Inputs, collector: CollectorFlags): void {
  const { range, from, to, where } = inputs.filter;
  server.registerTool(
    'what_is_sampled',
    {
      description:
        'Types of samples that there are besides CPU samples, such as time off the CPU, bytes allocated or in use, lock contention: ' +
        'what the parameter type of the other tools takes.',
      inputSchema: inputs.takes('what_is_sampled', { range, from, to, where }),
      annotations: READ_ONLY,
    },
    (query) =>
      answer<TypesAnswer & Answered>(collector, 'types', query, (value) => typesText(value, query.where)),
  );
}

function registerComparisons(server: Server, inputs: Inputs, collector: CollectorFlags): void {
  const { filter, limit, transform, text, takes, z } = inputs;
  const annotations = READ_ONLY;
  server.registerTool(
    'what_changed',
    {
      description:
        'Compares A (the base_ parameters) with B (the others): functions whose share of the CPU time changed most. ' +
        'Without base_ parameters A is the time before B.',
      inputSchema: takes('what_changed', {
        ...filter,
        ...{ transform, limit },
        base_range: filter.range,
        base_from: filter.from,
        base_to: filter.to,
        base_where: text('filter of A; default: where'),
      }),
      annotations,
    },
    async ({
      base_range: baseRange,
      base_from: baseFrom,
      base_to: baseTo,
      base_where: baseWhere,
      ...query
    }) => {
      try {
        const base = baseOf({ ...query, baseRange, baseFrom, baseTo, baseWhere }, Date.now());
        return await answer<Parameters<typeof diffText>[0]>(
          collector,
          'diff',
          { ...query, ...base },
          diffText,
        );
      } catch (error) {
        return { content: [{ type: 'text' as const, text: (error as Error).message }], isError: true };
      }
    },
  );
  server.registerTool(
    'timeline',
    {
      description:
        'Samples over time, one line for each value of a label: when which process, thread or CPU was busy.',
      inputSchema: takes('timeline', {
        ...filter,
        limit,
        by: z
          .string()
          .default('process')
          .describe('label: process, thread, cpu, container, service, host, …'),
      }),
      annotations,
    },
    ({ limit: lines, ...query }) =>
      answer<TimelineAnswer>(collector, 'timeline', { ...query, steps: TIMELINE_STEPS }, (value) =>
        timelineText(value, lines),
      ),
  );
  server.registerTool(
    'is_the_data_complete',
    {
      description:
        'How far the data can be trusted: samples received, rejected and dropped with reasons, stacks that are whole ' +
        'and named, senders, worst processes. Ask before drawing conclusions.',
      inputSchema: takes('is_the_data_complete', { ...filter, limit }),
      annotations,
    },
    ({ limit: lines, ...query }) =>
      answer<HealthAnswer>(collector, 'health', query, (value) => healthText(value, lines)),
  );
}
