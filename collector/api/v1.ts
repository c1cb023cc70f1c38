/** `/api/v1`: one entry per query, from which the router and the OpenAPI document are made. */

import type { TypeAnswer } from '../../common/flame/tree-answer.ts';
import {
  isLinkLabel,
  LABELS,
  LINK_LABELS,
  labelOf,
  SERIES_LABELS,
} from '../../common/profile/filters/filter.ts';
import { parseTransforms } from '../../common/profile/filters/transform-list.ts';
import { typeKey } from '../../common/profile/model/profile-type.ts';
import { THREAD_STATES } from '../../common/profile/model/thread-types.ts';
import { drawDiff, drawTree } from '../query/draw-tree.ts';
import { countExecutions } from '../query/executions.ts';
import { readProfile } from '../query/export.ts';
import { buildFlameTree, DEFAULT_LIMITS } from '../query/flame/flame-tree.ts';
import { mergeParts } from '../query/flame/merged-tree.ts';
import { callersAndCallees, compareFunctions, FunctionSums } from '../query/functions.ts';
import { readLanes } from '../query/lanes.ts';
import { QualityMeter } from '../query/quality.ts';
import { readSamples } from '../query/samples.ts';
import { countLines, hottestLine } from '../query/source-lines.ts';
import { takeFunctions } from '../query/summed-parts.ts';
import { readSteps, readThreads } from '../query/threads.ts';
import { readLargestGroups, readStepNanos, readTimeline } from '../query/timeline.ts';
import { transformParts } from '../query/transforms.ts';
import { isSharedLabel, readAttributeNames, readLinkLabels, readValues, sumType } from '../query/values.ts';
import { countCpus, readWindow, visitWindow } from '../query/window.ts';
import type { SourceFiles } from '../source/source-files.ts';
import type { SampleFilter, SamplePart, StackCounts, Store, Window } from '../store/store.ts';
import { EXPORT_FORMATS, type ExportFormat } from './export-formats.ts';
import { exportName } from './export-name.ts';
import {
  type Parameters,
  RequestError,
  readInteger,
  readLimits,
  readRange,
  readWanted,
} from './parameters.ts';
import { flameColumns, type StatusSources, statusResponse } from './responses.ts';
import * as schema from './schemas.ts';
import { describeTypes, readType } from './shown-type.ts';
import type { SourceAnswer } from './types.ts';

export interface ApiContext {
  store: Pick<Store, 'parts' | 'stats' | 'types'>;
  status: StatusSources;
  sources: SourceFiles;
  now: () => number;
}

/** A body that is not JSON. */
export interface FileAnswer {
  fileName: string;
  type: string;
  bytes: Uint8Array;
}

export interface Route {
  summary: string;
  parameters: readonly schema.Parameter[];
  /** JSON Schema of the answer; undefined for a file. */
  response: schema.Schema | undefined;
  /** Never a second old, as others may be. */
  isCurrent?: true;
  run(parameters: Parameters, context: ApiContext): Promise<unknown>;
}

const MAX_STEPS = 2000;
const MAX_LANES = 500;
const MAX_CELLS = 200_000;
const MAX_SAMPLES = 100_000;
const MAX_SAMPLE_STEPS = 10_000;
/** A stacked timeline shows so many groups; the rest is summed. */
const MAX_GROUPS = 20;

/** The filter of a request, with the type of its figures. */
interface AskedFilter extends SampleFilter {
  answerType: TypeAnswer;
}

/** @throws RequestError, FilterError */
async function readFilter(
  parameters: Parameters,
  store: ApiContext['store'],
  now: () => number,
  prefix = '',
): Promise<AskedFilter> {
  const range = readRange(parameters, store, now, prefix);
  const { type, answer } = await readType(parameters.get('type'), store);
  return { ...range, type: typeKey(type), answerType: answer };
}

/** Totals that every answer comes with. */
const basis = (filter: AskedFilter, { samples, allSamples, cpuNanos, cpus }: Omit<Window, 'parts'>) => ({
  fromMs: filter.fromMs,
  toMs: filter.toMs,
  type: filter.answerType,
  samples,
  allSamples,
  cpuNanos,
  cpus,
});

async function window(
  parameters: Parameters,
  { store, now }: ApiContext,
  { steps = 1, prefix = '' }: { steps?: number; prefix?: string } = {},
) {
  const filter = await readFilter(parameters, store, now, prefix);
  const transforms = parseTransforms(parameters.get('transform') ?? '');
  return { filter, window: await readWindow(store, filter, steps, { transforms }) };
}

const wanted = (parameters: Parameters, fallback: number): number =>
  readInteger(parameters, 'limit', { fallback, min: 1, max: 10_000 });

export const ROUTES: Readonly<Record<string, Route>> = {
  '/api/v1/tree': {
    summary: 'Flame graph: all stacks as a tree, the smallest boxes folded into "(other)"',
    parameters: [
      ...schema.FILTER,
      schema.TRANSFORM,
      schema.oneOf('invert', '1: the innermost function first, its callers below, the largest at the left', [
        '1',
      ]),
      schema.STEPS,
      schema.limit('largest nodes that are kept', DEFAULT_LIMITS.maxNodes),
      schema.ZOOM,
    ],
    response: schema.TREE,
    async run(parameters, { store, now }) {
      const steps = readInteger(parameters, 'steps', { fallback: 120, min: 1, max: MAX_STEPS });
      const wanted = readWanted(parameters);
      const filter = await readFilter(parameters, store, now);
      const isInverted = parameters.get('invert') === '1';
      const { window, tree, leaves } = await drawTree(store, filter, { ...wanted, steps, isInverted });
      return {
        ...basis(filter, window),
        timeline: Array.from(window.timeline),
        ...flameColumns(tree),
        leaves,
      };
    },
  },
  '/api/v1/top': {
    summary: 'Functions by the events in themselves, and in what they called',
    parameters: [
      ...schema.FILTER,
      schema.TRANSFORM,
      schema.oneOf('sort', 'the most of which comes first; default: self', ['self', 'total']),
      schema.limit('functions', 50),
    ],
    response: schema.TOP,
    async run(parameters, context) {
      const filter = await readFilter(parameters, context.store, context.now);
      const transforms = parseTransforms(parameters.get('transform') ?? '');
      const sums = new FunctionSums();
      const visit = (part: StackCounts): void => {
        for (const transformed of transformParts([part], transforms)) sums.add(transformed);
      };
      const takeSums = (part: SamplePart): Promise<boolean> => takeFunctions(part, filter, sums);
      const reading = transforms.length === 0 ? { takeSums } : {};
      const found = await visitWindow(context.store, filter, 1, visit, reading);
      const sort = parameters.get('sort') === 'total' ? 'total' : 'self';
      const { count, functions } = sums.rank(wanted(parameters, 50), sort);
      return { ...basis(filter, found), functionCount: count, functions };
    },
  },
  '/api/v1/callers': {
    summary: 'Who calls a function (callers, as a tree away from it) and what it calls (callees)',
    parameters: [
      ...schema.FILTER,
      schema.TRANSFORM,
      schema.text('function', 'its name, exactly; several functions of that name are taken together', true),
      schema.limit('largest nodes of each tree', 2000),
      schema.zoomOf('callers_zoom', 'a box of the callers'),
      schema.zoomOf('callees_zoom', 'a box of the callees'),
    ],
    response: schema.CALLERS,
    async run(parameters, context) {
      const name = parameters.get('function');
      if (name === null || name === '')
        throw new RequestError('function is missing: name the function to look at');
      const found = await window(parameters, context);
      const { samples, callers, callees } = callersAndCallees(found.window.parts, name);
      const limitsOf = (half: string) => readLimits(parameters, `${half}_zoom`, 2000);
      return {
        ...basis(found.filter, found.window),
        function: name,
        functionSamples: samples,
        callers: flameColumns(buildFlameTree([callers], limitsOf('callers'))),
        callees: flameColumns(buildFlameTree([callees], limitsOf('callees'))),
      };
    },
  },
  '/api/v1/types': {
    summary: 'Types of the samples of a time and a filter: what their values are, and how many there are',
    parameters: schema.TIMED_FILTER,
    response: schema.TYPES,
    async run(parameters, { store, now }) {
      const { fromMs, toMs, where } = readRange(parameters, store, now);
      const types = describeTypes(await store.types({ fromMs, toMs }));
      const found = await Promise.all(
        types.map(async ({ type, answer }) => ({
          ...answer,
          ...(await sumType(store, { fromMs, toMs, where, type: typeKey(type) })),
        })),
      );
      return { fromMs, toMs, types: found.filter(({ samples }) => samples > 0) };
    },
  },
  '/api/v1/timeline': {
    summary: 'Events in equal steps of time, in groups by a label',
    parameters: [
      ...schema.FILTER,
      schema.STEPS,
      schema.text(
        'by',
        `label whose values become groups: ${[...SERIES_LABELS, 'cpu', ...LINK_LABELS].join(', ')}, or an attribute's name`,
      ),
    ],
    response: schema.TIMELINE,
    async run(parameters, { store, now }) {
      const filter = await readFilter(parameters, store, now);
      const by = parameters.get('by') ?? undefined;
      const key = by === undefined ? undefined : labelOf(by);
      if (key !== undefined && key !== 'cpu' && !isLinkLabel(key) && !isSharedLabel(key))
        throw new RequestError(`by is "${by}": a stack has many of these`);
      const steps = readInteger(parameters, 'steps', { fallback: 120, min: 1, max: MAX_STEPS });
      const groups = await readLargestGroups(store, filter, steps, key, MAX_GROUPS);
      const stepNanos = await readStepNanos(store, filter, steps);
      const cpuNanos = stepNanos.reduce((a, b) => a + b, 0);
      const { fromMs, toMs, answerType: type } = filter;
      return { fromMs, toMs, type, steps, cpuNanos, stepNanos: Array.from(stepNanos), ...groups };
    },
  },
  '/api/v1/heatmap': {
    summary: 'Events in a grid: columns of time, rows of time within a column',
    parameters: [
      ...schema.FILTER,
      schema.integer('columns', 'columns of the grid', 120),
      schema.integer('rows', 'rows of a column', 50),
    ],
    response: schema.HEATMAP,
    async run(parameters, { store, now }) {
      const filter = await readFilter(parameters, store, now);
      const columns = readInteger(parameters, 'columns', { fallback: 120, min: 1, max: MAX_STEPS });
      const rows = readInteger(parameters, 'rows', { fallback: 50, min: 1, max: 1000 });
      if (columns * rows > MAX_CELLS)
        throw new RequestError(`${columns} × ${rows} cells: at most ${MAX_CELLS}`);
      const groups = await readTimeline(store, filter, columns * rows, undefined);
      const cells = Array.from(groups.get('') ?? new Float64Array(columns * rows));
      const { fromMs, toMs, answerType: type } = filter;
      return { fromMs, toMs, type, columns, rows, cells, cpus: await countCpus(store, filter) };
    },
  },
  '/api/v1/labels': {
    summary:
      'What samples can be filtered and grouped by, and the other attributes that samples of the time have',
    parameters: schema.FILTER,
    response: schema.LABELS_ANSWER,
    async run(parameters, { store, now }) {
      const filter = await readFilter(parameters, store, now);
      const labels = [...LABELS, ...(await readLinkLabels(store, filter))];
      return { labels, attributes: await readAttributeNames(store, filter) };
    },
  },
  '/api/v1/values': {
    summary: 'Values of a label with their events; of kind and frame, those of the innermost frame',
    parameters: [
      ...schema.FILTER,
      schema.text(
        'label',
        `the label: ${[...LABELS, ...LINK_LABELS].join(', ')}, or an attribute's name`,
        true,
      ),
      schema.text('contains', 'only values that contain this text, in upper or lower case'),
      schema.limit('values', 100),
    ],
    response: schema.VALUES,
    async run(parameters, { store, now }) {
      const label = labelOf(parameters.get('label') ?? '');
      const filter = await readFilter(parameters, store, now);
      const all = await readValues(store, filter, label);
      const samples = all.reduce((sum, each) => sum + each.samples, 0);
      const text = (parameters.get('contains') ?? '').toLowerCase();
      const values = all.filter(({ value }) => value.toLowerCase().includes(text));
      const executions = label === 'process' ? await countExecutions(store, filter) : undefined;
      const { fromMs, toMs, answerType: type } = filter;
      return {
        fromMs,
        toMs,
        type,
        label,
        samples,
        valueCount: values.length,
        values: values
          .slice(0, wanted(parameters, 100))
          .map((each) => ({ ...each, ...(executions && { processes: executions.get(each.value) ?? 0 }) })),
      };
    },
  },
  '/api/v1/diff': {
    summary: 'What changed: functions of two windows or filters by the change of their share',
    parameters: [...schema.FILTER, ...schema.BASE_FILTER, schema.TRANSFORM, schema.limit('functions', 50)],
    response: schema.DIFF,
    async run(parameters, context) {
      const now = await window(parameters, context);
      const base = await window(parameters, context, { prefix: 'base_' });
      const { count, functions } = compareFunctions(base.window, now.window, wanted(parameters, 50));
      return {
        base: basis(base.filter, base.window),
        now: basis(now.filter, now.window),
        functionCount: count,
        functions,
      };
    },
  },
  '/api/v1/difftree': {
    summary: 'What changed, as a flame graph: each node with the events of both windows',
    parameters: [
      ...schema.FILTER,
      ...schema.BASE_FILTER,
      schema.TRANSFORM,
      schema.limit('largest nodes that are kept', DEFAULT_LIMITS.maxNodes),
      schema.ZOOM,
    ],
    response: schema.DIFF_TREE,
    async run(parameters, { store, now }) {
      const filters = {
        now: await readFilter(parameters, store, now),
        base: await readFilter(parameters, store, now, 'base_'),
      };
      const drawn = await drawDiff(store, filters, readWanted(parameters));
      const { nodes, ...columns } = flameColumns(drawn.tree);
      return {
        base: basis(filters.base, drawn.base.window),
        now: basis(filters.now, drawn.now.window),
        ...columns,
        nodes: { ...nodes, baseSelf: Array.from(drawn.tree.carried ?? []) },
        leaves: drawn.now.leaves,
        baseLeaves: drawn.base.leaves,
      };
    },
  },
  '/api/v1/samples': {
    summary: 'Single samples in the order of time, with their stacks, for a flame chart',
    parameters: [
      ...schema.FILTER,
      schema.limit('samples, the earliest first', 10_000),
      schema.text(
        'steps',
        'where there are more samples: for each of so many steps of the time, and each thread, its most frequent stack',
      ),
    ],
    response: schema.SAMPLES,
    run: samples,
  },
  '/api/v1/threads': {
    summary: 'Threads with their events, the busiest first',
    parameters: [
      ...schema.FILTER,
      schema.text('contains', 'only threads whose name, process, PID or TID contains this text'),
      schema.limit('threads', 200),
    ],
    response: schema.THREADS,
    async run(parameters, { store, now }) {
      const filter = await readFilter(parameters, store, now);
      const text = (parameters.get('contains') ?? '').toLowerCase();
      const threads = (await readThreads(store, filter)).filter(({ process, pid, thread, tid }) =>
        `${process} ${thread} ${pid}/${tid}`.toLowerCase().includes(text),
      );
      const { fromMs, toMs, answerType: type } = filter;
      return {
        fromMs,
        toMs,
        type,
        threadCount: threads.length,
        threads: threads.slice(0, wanted(parameters, 200)),
      };
    },
  },
  '/api/v1/lanes': {
    summary:
      'Threads over time: how much of each step each was running, ready, or waiting for what (--off-cpu)',
    parameters: [
      ...schema.TIMED_FILTER,
      schema.integer('steps', 'steps of the time', 600),
      schema.limit('threads, those first that did most', 50),
    ],
    response: schema.LANES,
    async run(parameters, { store, now }) {
      const filter = readRange(parameters, store, now);
      const steps = readInteger(parameters, 'steps', { fallback: 600, min: 1, max: MAX_STEPS });
      const limit = readInteger(parameters, 'limit', { fallback: 50, min: 1, max: MAX_LANES });
      const { fromMs, toMs } = filter;
      return {
        fromMs,
        toMs,
        steps,
        states: [...THREAD_STATES],
        ...(await readLanes(store, filter, { steps, limit })),
      };
    },
  },
  '/api/v1/source': {
    summary: 'A source file: its lines with the events in them, and its text where the collector may show it',
    parameters: [
      ...schema.FILTER,
      schema.text('file', 'as frames name it', true),
      schema.text('function', 'whose line with the most events is looked for; default: any of the file'),
    ],
    response: schema.SOURCE,
    run: source,
  },
  '/api/v1/health': {
    summary: 'Is the data complete: what arrived, what was lost and why, how many stacks are whole and named',
    parameters: schema.FILTER,
    response: schema.HEALTH,
    async run(parameters, context) {
      const filter = await readFilter(parameters, context.store, context.now);
      const meter = new QualityMeter();
      const found = await visitWindow(context.store, filter, 1, (part) => meter.add(part));
      return {
        ...basis(filter, found),
        quality: meter.quality,
        status: statusResponse(context.status, context.now()),
      };
    },
  },
  '/api/v1/status': {
    summary: 'What arrived and what was lost since the start, from whom, and how full the store is',
    parameters: [],
    response: schema.STATUS,
    isCurrent: true,
    run: async (_, { status, now }) => statusResponse(status, now()),
  },
  '/api/v1/export': {
    summary: 'What is seen as a file',
    parameters: [
      ...schema.FILTER,
      schema.TRANSFORM,
      schema.oneOf('format', 'format of the file', Object.keys(EXPORT_FORMATS), true),
    ],
    response: undefined,
    async run(parameters, { store, now }) {
      const name = parameters.get('format') ?? '';
      if (!Object.hasOwn(EXPORT_FORMATS, name)) {
        throw new RequestError(`format is "${name}": use one of ${Object.keys(EXPORT_FORMATS).join(', ')}`);
      }
      const format = EXPORT_FORMATS[name as ExportFormat];
      const transforms = parseTransforms(parameters.get('transform') ?? '');
      const filter = await readFilter(parameters, store, now);
      const profile = await readProfile(store, filter, transforms);
      return {
        fileName: exportName(filter, transforms.length > 0, format.ending),
        type: format.type,
        bytes: format.write(profile),
      } satisfies FileAnswer;
    },
  },
};

const FIRST_STEPS = 120;

/** End of the first step that has events. */
function endOfFirst({ fromMs, toMs }: SampleFilter, timeline: Float64Array): number {
  const step = timeline.findIndex((count) => count > 0);
  return step < 0 ? toMs : fromMs + ((step + 1) * (toMs - fromMs)) / timeline.length;
}

/** Answers for a source file. Only files that a stack of the window names are read: see SourceFiles. */
async function source(parameters: Parameters, { store, sources, now }: ApiContext): Promise<SourceAnswer> {
  const file = parameters.get('file');
  if (file === null || file === '')
    throw new RequestError('file is missing: name the file, as frames name it');
  const filter = await readFilter(parameters, store, now);
  const found = await readWindow(store, filter, FIRST_STEPS);
  const counts = countLines(found.parts, file);
  const line = hottestLine(counts, parameters.get('function') ?? '');
  const text =
    counts.samples > 0
      ? await sources.read(file, line)
      : { problem: `no sample of this time and filter is in ${file}` };
  return {
    ...basis(filter, found),
    file,
    fileSamples: counts.samples,
    firstMs: endOfFirst(filter, found.timeline),
    line,
    counts: counts.lines,
    ...('problem' in text ? text : { problem: '', text }),
  };
}

async function samples(parameters: Parameters, { store, now }: ApiContext): Promise<unknown> {
  const filter = await readFilter(parameters, store, now);
  const limit = readInteger(parameters, 'limit', { fallback: 10_000, min: 1, max: MAX_SAMPLES });
  const single = await readSamples(store, filter, limit);
  const { total } = single;
  const steps = readInteger(parameters, 'steps', { fallback: 0, min: 1, max: MAX_SAMPLE_STEPS });
  const isStepped = steps > 0 && total > limit;
  const { rows, parts } = isStepped ? await readSteps(store, filter, steps) : single;
  if (rows.length > MAX_SAMPLES)
    throw new RequestError(
      `${rows.length} steps of threads: filter for fewer threads, or ask for fewer steps`,
    );
  const stacks = await Promise.all(parts.map((part: SamplePart) => part.stacks()));
  const counts = stacks.map(
    (part): StackCounts => ({ ...part, selfCounts: new Float64Array(part.parents.length) }),
  );
  for (const { part, node, count } of rows) counts[part]!.selfCounts[node]! += count;
  const nodeMaps = counts.map(() => new Uint32Array());
  const merged = mergeParts(counts, nodeMaps);
  const threads: { process: string; pid: number; thread: string; tid: number; host: string }[] = [];
  // by content: each part has series of its own
  const threadIds = new Map<string, number>();
  return {
    fromMs: filter.fromMs,
    toMs: filter.toMs,
    type: filter.answerType,
    samples: total,
    returned: rows.reduce((sum, { count }) => sum + count, 0),
    ...(isStepped && { stepMs: (filter.toMs - filter.fromMs) / steps }),
    times: rows.map(({ timeMs }) => timeMs),
    nodes: rows.map(({ part, node }) => nodeMaps[part]![node]!),
    threads: rows.map(({ series }) => {
      const { process, pid, thread, tid, host } = series;
      const key = `${host}\0${process}\0${pid}\0${tid}\0${thread}`;
      let id = threadIds.get(key);
      if (id === undefined) {
        id = threads.push({ process, pid, thread, tid, host }) - 1;
        threadIds.set(key, id);
      }
      return id;
    }),
    cpus: rows.map(({ cpu }) => cpu),
    counts: rows.map(({ count }) => count),
    threadTable: threads,
    stackTable: flameColumns({ ...merged, foldedNodes: 0, foldedSamples: 0 }),
  };
}
