/** JSON Schemas of the API's answers (OpenAPI 3.1 uses them as they are). */
import { LABELS, LINK_LABELS } from '../../common/profile/filters/filter.ts';
import { TRANSFORMS } from '../../common/profile/filters/transform-list.ts';

export type Schema = { readonly [key: string]: unknown };

export interface Parameter {
  name: string;
  in: 'query';
  description: string;
  required: boolean;
  schema: Schema;
}

const NUMBER = { type: 'number' };
const INTEGER = { type: 'integer' };
const STRING = { type: 'string' };
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const NUMBERS = listOf(NUMBER);

/** Every property is always there, and there are no others. */
function object(properties: Record<string, Schema>, optional: Record<string, Schema> = {}): Schema {
  return {
    type: 'object',
    properties: { ...properties, ...optional },
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

const parameter = (name: string, description: string, schema: Schema, required = false): Parameter => ({
  name,
  in: 'query',
  description,
  required,
  schema,
});

export const text = (name: string, description: string, required = false): Parameter =>
  parameter(name, description, STRING, required);
export const integer = (name: string, description: string, fallback: number): Parameter =>
  parameter(name, description, { type: 'integer', minimum: 1, default: fallback });
export const limit = (what: string, fallback: number): Parameter =>
  integer('limit', `at most so many ${what}`, fallback);
export const oneOf = (
  name: string,
  description: string,
  values: readonly string[],
  required = false,
): Parameter => parameter(name, description, { type: 'string', enum: values }, required);
export const STEPS = integer(
  'steps',
  'steps of the timeline; in steps of 200 s and more, ten seconds count where they begin',
  120,
);

const timeOf = (prefix: string, what: string): Parameter[] => [
  text(`${prefix}from`, `start${what}: now, -5m, milliseconds since 1970, or ISO 8601`),
  text(`${prefix}to`, `end${what}, not included; default: now`),
  text(
    `${prefix}range`,
    `instead of from: length of time up to the end, such as 60s, 15m, 6h; or all; default: 15m`,
  ),
];

const filterOf = (prefix: string, what: string): Parameter[] => [
  ...timeOf(prefix, what),
  text(
    `${prefix}where`,
    `filter${what}: terms such as process=node,python3 host!=db1 thread~^worker cpu=0; keys: ${[...LABELS, ...LINK_LABELS].join(', ')}, and names of attributes; ` +
      'operators: = != ~ !~ (regular expressions); values that hold spaces stand in double quotes',
  ),
];

const ALIGN = oneOf('align', '1: a range that ends now is widened to whole steps, 120ths of it', ['1']);
const TYPE = text(
  'type',
  'type of the samples, one at a time: a name of /api/v1/types such as cpu (default), off_cpu/nanoseconds, alloc_space; all ' +
    'figures of the answer are values of it, in its unit',
);

export const FILTER: readonly Parameter[] = [...filterOf('', ''), TYPE, ALIGN];
/** Of all types that there are. */
export const TIMED_FILTER: readonly Parameter[] = [...filterOf('', ''), ALIGN];
export const TRANSFORM = text(
  'transform',
  `changes of the stacks, from left to right, such as focus=main hide~^std:: recursion=all only=mine: ${Object.entries(
    TRANSFORMS,
  )
    .map(([name, what]) => `${name}: ${what}`)
    .join('; ')}`,
);
export const zoomOf = (name: string, what: string): Parameter =>
  text(name, `${what} that is looked at, as zoom= of /api/v1/tree; its path begins with the function`);
export const ZOOM = text(
  'zoom',
  "a box that is looked at, by the key that the page's address has of it, such as 1z141z41q0zik0: the nodes that are kept are most of them " +
    'inside of it, and chosen by their share of it; KEY~12: what its 12 largest children leave',
);
export const BASE_FILTER: readonly Parameter[] = filterOf('base_', ' of what is compared with');

const TIMES = { fromMs: NUMBER, toMs: NUMBER };
const TYPE_PROPERTIES = {
  name: { ...STRING, description: 'to ask for it with type=' },
  type: { ...STRING, description: 'what a value is, such as samples, off_cpu, alloc_space' },
  unit: { ...STRING, description: 'such as count, nanoseconds, bytes' },
  periodType: {
    ...STRING,
    description: 'what passes between two samples; empty where the sender does not say',
  },
  periodUnit: STRING,
  kind: {
    enum: ['rate', 'level'],
    description: 'rate: values of different times add up; level: a value is the state at a time',
  },
  shown: {
    enum: ['sum', 'last'],
    description: 'what is shown of a stretch of time: the sum, or what each process told last',
  },
};
const RANGE = {
  ...TIMES,
  type: {
    ...object(TYPE_PROPERTIES),
    description: 'all figures called samples, self, total, counts are values of it',
  },
};
const BASIS = {
  ...RANGE,
  samples: { ...NUMBER, description: 'sum of the values that passed the filter: of CPU samples, how many' },
  allSamples: { ...NUMBER, description: 'sum of all values of the range' },
  cpuNanos: { ...NUMBER, description: 'CPU time that the samples stand for; 0 for other types than cpu' },
  cpus: { ...INTEGER, description: 'logical CPUs that any event of the range named' },
};
const COLUMNS = {
  strings: listOf(STRING),
  kinds: listOf(STRING),
  frames: object({ name: NUMBERS, file: NUMBERS, mapping: NUMBERS, kind: NUMBERS }),
  nodes: object({ parent: NUMBERS, frame: NUMBERS, self: NUMBERS }),
  folded: object({ nodes: NUMBER, samples: NUMBER }),
};
const LEAVES = {
  ...object({
    samples: NUMBER,
    kinds: listOf(object({ kind: STRING, samples: NUMBER })),
    libraries: listOf(object({ library: STRING, samples: NUMBER })),
    incomplete: { ...NUMBER, description: 'events whose stack was cut; they are in the kinds as well' },
  }),
  description:
    'what the events of the picture, or of the box that is looked at, ended in: of all events, whatever has a node; the 50 largest libraries',
};
const FRAME = { name: STRING, file: STRING, mapping: STRING, kind: STRING };
const COUNTED = { ...FRAME, self: NUMBER, total: NUMBER };

export const TREE = object({ ...BASIS, timeline: NUMBERS, ...COLUMNS, leaves: LEAVES });
export const TOP = object({ ...BASIS, functionCount: INTEGER, functions: listOf(object(COUNTED)) });
export const CALLERS = object({
  ...BASIS,
  function: STRING,
  functionSamples: NUMBER,
  callers: object(COLUMNS),
  callees: object(COLUMNS),
});
export const TIMELINE = object({
  ...RANGE,
  steps: INTEGER,
  samples: NUMBER,
  cpuNanos: { ...NUMBER, description: 'CPU time that the samples stand for' },
  stepNanos: {
    ...NUMBERS,
    description:
      'CPU time of each step, by the rates at which its samples were taken; 0 for other types than cpu',
  },
  groupCount: INTEGER,
  groups: listOf(object({ value: STRING, samples: NUMBER, counts: NUMBERS })),
  other: NUMBERS,
});
export const SOURCE = object(
  {
    ...BASIS,
    file: STRING,
    fileSamples: { ...NUMBER, description: 'events whose stack holds a frame of the file' },
    firstMs: { ...NUMBER, description: 'the first event that passed the filter was before' },
    line: { ...INTEGER, description: 'the one to look at, 0 if none has events' },
    counts: {
      ...listOf(object({ line: INTEGER, function: STRING, self: NUMBER, total: NUMBER })),
      description: 'lines with events: in the line itself, and in it or what it called',
    },
    problem: { ...STRING, description: 'why there is no text, empty if there is' },
  },
  {
    text: {
      ...object({
        path: STRING,
        modifiedMs: NUMBER,
        lineCount: INTEGER,
        firstLine: INTEGER,
        lines: listOf(STRING),
      }),
      description: 'below a directory of --source; at most 4,000 lines around the wanted one',
    },
  },
);
export const HEATMAP = object({
  ...RANGE,
  columns: INTEGER,
  rows: INTEGER,
  cells: { ...NUMBERS, description: 'column by column' },
  cpus: { ...INTEGER, description: 'that samples of the time came from, whatever is filtered' },
});
export const TYPES = object({
  ...TIMES,
  types: listOf(
    object({
      ...TYPE_PROPERTIES,
      samples: { ...NUMBER, description: 'how many samples, whatever their values' },
      total: { ...NUMBER, description: 'what they come to: the sum, or of a level what was told last' },
    }),
  ),
});
export const LABELS_ANSWER = object({ labels: listOf(STRING), attributes: listOf(STRING) });
export const VALUES = object({
  ...RANGE,
  label: STRING,
  samples: { ...NUMBER, description: 'events of all values, whatever text is asked for' },
  valueCount: INTEGER,
  values: listOf(
    object(
      { value: STRING, samples: NUMBER },
      { processes: { ...INTEGER, description: 'of the label process: executions of that name' } },
    ),
  ),
});
export const DIFF = object({
  base: object(BASIS),
  now: object(BASIS),
  functionCount: INTEGER,
  functions: listOf(object({ ...COUNTED, baseSelf: NUMBER, baseTotal: NUMBER, selfShareChange: NUMBER })),
});
export const DIFF_TREE = object({
  base: object(BASIS),
  now: object(BASIS),
  ...COLUMNS,
  nodes: object({
    parent: NUMBERS,
    frame: NUMBERS,
    self: NUMBERS,
    baseSelf: { ...NUMBERS, description: 'events of its own in the base' },
  }),
  leaves: LEAVES,
  baseLeaves: LEAVES,
});
const THREAD = { process: STRING, pid: INTEGER, thread: STRING, tid: INTEGER, host: STRING };
export const THREADS = object({
  ...RANGE,
  threadCount: INTEGER,
  threads: listOf(object({ ...THREAD, samples: NUMBER })),
});
export const SAMPLES = object(
  {
    ...RANGE,
    samples: { ...NUMBER, description: 'events that passed the filter' },
    returned: { ...NUMBER, description: 'events in this answer' },
    times: { ...NUMBERS, description: 'milliseconds since 1970' },
    nodes: { ...NUMBERS, description: 'node of stackTable at which the stack ends' },
    threads: { ...NUMBERS, description: 'index into threadTable' },
    cpus: NUMBERS,
    counts: NUMBERS,
    threadTable: listOf(object(THREAD)),
    stackTable: object(COLUMNS),
  },
  { stepMs: { ...NUMBER, description: 'of a step, where each row is the most frequent stack of one' } },
);

export const LANES = object({
  ...TIMES,
  steps: INTEGER,
  states: listOf(STRING),
  threadCount: INTEGER,
  threads: listOf(
    object({
      ...THREAD,
      totals: { ...NUMBERS, description: 'nanoseconds in each state: exact where they were counted' },
      steps: { ...NUMBERS, description: 'step of each share, in order' },
      states: { ...NUMBERS, description: 'index into states' },
      shares: { ...NUMBERS, description: 'what of the step the thread was in that state, from 0 to 1' },
      spread: { ...NUMBERS, description: 'how much of that was counted in an interval, but not told when' },
    }),
  ),
});

const REASONS = listOf(object({ reason: STRING, count: NUMBER, lastMs: NUMBER }));
export const STATUS = object(
  {
    nowMs: NUMBER,
    startedMs: NUMBER,
    listen: object({ grpc: STRING, http: STRING }),
    requests: object({ accepted: NUMBER, refused: NUMBER }, { repeated: NUMBER }),
    refusals: REASONS,
    rejections: REASONS,
    samples: object({ received: NUMBER, stored: NUMBER, rejected: NUMBER }),
    agents: listOf(
      object(
        { peer: STRING, host: STRING, lastMs: NUMBER, samples: NUMBER, samplesPerSecond: NUMBER },
        {
          lastSamplesMs: NUMBER,
          version: STRING,
          counters: {
            type: 'object',
            additionalProperties: NUMBER,
            description: 'what the agent counts, by name; sent with --self-metrics',
          },
          countersSpanMs: { ...NUMBER, description: 'from the start of the agent to the counters' },
        },
      ),
    ),
    store: object(
      {
        samples: NUMBER,
        bytes: NUMBER,
        maxBytes: NUMBER,
        maxAgeMs: NUMBER,
        droppedForMemory: NUMBER,
        droppedForAge: NUMBER,
      },
      {
        oldestMs: NUMBER,
        newestMs: NUMBER,
        problem: { ...STRING, description: 'why what arrives can not be written now' },
      },
    ),
  },
  {
    tenant: { ...STRING, description: 'whose samples these are; with --tenant' },
    traceUrl: {
      ...STRING,
      description: 'where traces are shown, {trace_id} stands for the ID of one; with --trace-url',
    },
    requestMemory: {
      ...object({ maxBytes: NUMBER, bytes: NUMBER, peakBytes: NUMBER, refused: NUMBER }),
      description: 'requests that arrive or are being stored',
    },
    connections: {
      ...object({ connections: NUMBER, maxConnections: NUMBER, cut: NUMBER, failedAccepts: NUMBER }),
      description: 'of all servers',
    },
    forward: {
      ...object({
        to: STRING,
        samples: object({ received: NUMBER, sent: NUMBER, waiting: NUMBER, lost: NUMBER }),
        losses: listOf(object({ reason: STRING, count: NUMBER })),
        requests: object({ sent: NUMBER, retried: NUMBER, waiting: NUMBER, waitingBytes: NUMBER }),
        counterReports: object({ sent: NUMBER, lost: NUMBER }),
      }),
      description: 'what became of what is passed on to another receiver; with --forward-to',
    },
    agent: {
      ...object(
        { state: { enum: ['running', 'waiting'] }, restarts: NUMBER, startedMs: NUMBER },
        {
          lastExit: object({
            code: { type: ['number', 'null'] },
            signal: { type: ['string', 'null'] },
            atMs: NUMBER,
          }),
          nextTryMs: NUMBER,
        },
      ),
      description: 'the agent that "everyframe run" starts again when it dies; waiting: until nextTryMs',
    },
  },
);
export const HEALTH = object({
  ...BASIS,
  quality: object({
    samples: NUMBER,
    unwound: NUMBER,
    named: NUMBER,
    attributed: NUMBER,
    cuts: {
      ...listOf(object({ marker: STRING, samples: NUMBER })),
      description: 'why stacks are incomplete, as the frames that end them say',
    },
    unread: {
      ...listOf(object({ marker: STRING, samples: NUMBER })),
      description: 'why functions of language runtimes have no name, as the frames in their place say',
    },
    worst: listOf(object({ process: STRING, samples: NUMBER, cut: NUMBER, unnamed: NUMBER })),
  }),
  status: STATUS,
});
export const IMPORTED = object({
  fileName: STRING,
  samples: { ...NUMBER, description: 'events that were stored' },
  rejected: listOf(object({ reason: STRING, count: NUMBER })),
  fromMs: NUMBER,
  toMs: NUMBER,
  repeated: { type: 'boolean', description: 'the same file was imported before, and is not stored again' },
});
export const TAKEN_SYMBOLS = object({
  fileName: STRING,
  fileId: { ...STRING, description: '32 hex digits' },
  gnuBuildId: { ...STRING, description: 'hex, empty if it has none' },
  sources: { ...listOf(STRING), description: 'where its names are from: DWARF, Go, symtab' },
  nameless: { ...NUMBER, description: 'stored addresses of it that arrived without a name' },
  named: { ...NUMBER, description: 'those of them that have one now' },
});
export const ERROR = object({ error: STRING });
