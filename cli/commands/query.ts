/** `everyframe query …`: the answers of the query API as text or as JSON. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { printable } from '../../common/base/printable.ts';
import { IDLE_MODES, type IdleMode } from '../../common/profile/filters/idle-pools.ts';
import { addExamples } from '../program/examples.ts';
import { IDLE_HELP } from '../program/idle-help.ts';
import { withChoices } from '../program/settings.ts';
import type { ExportFlags } from '../query/export-file.ts';
import { whereOf } from '../query/filter-words.ts';
import { type LabelsAnswer, labelsText, type ValuesAnswer, valuesText } from '../query/label-text.ts';
import { explainNothing } from '../query/other-types.ts';
import { baseOf } from '../query/query-base.ts';
import { addCollectorFlags, ask, type CollectorFlags, type Query } from '../query/query-client.ts';
import {
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

interface Flags extends CollectorFlags {
  limit: number;
  json?: true;
  from?: string;
  to?: string;
  range?: string;
  where?: string;
  type?: string;
  transform?: string;
  idle?: IdleMode;
  baseFrom?: string;
  baseTo?: string;
  baseRange?: string;
  baseWhere?: string;
  by?: string;
  contains?: string;
}

type ToText = (answer: never, flags: Flags) => string[];

const TIMELINE_STEPS = 60;

export function registerQuery(program: Command): void {
  const query = program.command('query').description('ask a running collector, as text or with --json');
  addExamples(query, [
    ['everyframe query top --where process=node', 'functions of the processes that are called node'],
    ['everyframe query diff --range 5m', 'what changed against the five minutes before'],
  ]);
  const top = transformed(add(query, 'top', 'functions by the CPU they use', 'top', topText as ToText));
  addExamples(top, [
    ['everyframe query top --range 5m', 'of the last five minutes'],
    ['everyframe query top process=java thread~^worker --limit 50', 'of some threads'],
    [
      'everyframe query top --url server:11080 --tls-ca ca.pem --token-file token',
      'of a collector elsewhere, with TLS and a token',
    ],
  ]);
  const tree = transformed(
    add(query, 'tree', 'the largest branches of all stacks', 'tree', ((answer, { limit }) =>
      treeText(answer, limit)) as ToText),
  );
  addExamples(tree, [
    ['everyframe query tree --limit 60', 'the sixty largest branches'],
    ['everyframe query tree --transform only=mine', 'without runtimes and libraries'],
    [
      'everyframe query tree --where trace_id=4bf92f3577b34da6a3ce929d0e0e4736',
      'of one request, where samples are linked to traces',
    ],
  ]);
  registerCallers(query);
  registerDiff(query);
  registerTimeline(query);
  registerWaits(query);
  const types = untyped(
    query,
    'types',
    'what samples there are: of CPUs, of waiting, of memory, …',
    'types',
    ((answer: TypesAnswer, { where }) => typesText(answer, where)) as ToText,
  );
  addExamples(types, [
    ['everyframe query types --range all', 'what can be asked for with --type'],
    ['everyframe query top --type alloc_space', 'who allocates, in bytes'],
  ]);
  registerLabels(query);
  registerExport(query);
  const health = add(query, 'health', 'is the data complete', 'health', ((answer: HealthAnswer, { limit }) =>
    healthText(answer, limit)) as ToText);
  addExamples(health, [
    ['everyframe query health', 'what was lost or cut in the last 15 minutes, and why'],
    ['everyframe query health --range all --json', 'of all that is kept, for a script'],
  ]);
}

function registerCallers(query: Command): void {
  const callers = add(query, 'callers <function>', 'who calls a function, and what it calls', 'callers', ((
    answer,
    { limit },
  ) => callersText(answer, limit)) as ToText);
  addExamples(transformed(callers), [
    ['everyframe query callers malloc', 'who allocates'],
    ["everyframe query callers 'std::sort' --where process=app", 'the name as query top shows it'],
  ]);
}

function registerDiff(query: Command): void {
  const diff = add(query, 'diff', 'what changed between two times or filters', 'diff', diffText as ToText);
  transformed(diff)
    .option(
      '--base-from <TIME>',
      'start of what is compared with (default: as long before --from as --to is after it)',
    )
    .option('--base-to <TIME>', 'its end (default: now, or --from)')
    .option('--base-range <LENGTH>', 'instead of --base-from: its length')
    .option('--base-where <FILTER>', 'its filter (default: that of --where)');
  addExamples(diff, [
    ['everyframe query diff', 'the last 15 minutes against the 15 minutes before'],
    ['everyframe query diff --where host=new --base-where host=old', 'two hosts in the same time'],
  ]);
}

function registerTimeline(query: Command): void {
  const timeline = add(query, 'timeline', 'samples over time', 'timeline', ((
    answer: TimelineAnswer,
    { limit },
  ) => timelineText(answer, limit)) as ToText).addOption(
    new Option('--by <LABEL>', 'one line for each value of a label').default('process'),
  );
  addExamples(timeline, [
    ['everyframe query timeline --by thread --where process=java', 'which threads were busy when'],
    ['everyframe query timeline --by cpu --range 1m', 'how busy each CPU was'],
    ['everyframe query timeline --by trace_id --where frame=encode', 'the traces in which a function ran'],
  ]);
}

function registerWaits(query: Command): void {
  const waits = withTime(query.command('waits'))
    .description('where threads waited: exact times by state, and what sampled stacks stand for (--off-cpu)')
    .option('--by <LABEL>', 'such as process, thread, container or service', 'process')
    .action(async (_words: string[], _flags: Flags, command: Command) => {
      const flags = flagsOf(command);
      const { from, to, range, where } = flags;
      const answer = await askWaits(flags, { from, to, range, where }, flags.by, flags.limit);
      const text = flags.json
        ? JSON.stringify(answer, undefined, 2)
        : waitsText(answer).map(printable).join('\n');
      process.stdout.write(`${text}\n`);
    });
  addExamples(waits, [
    [
      'everyframe query waits --where process=postgres',
      'what the processes that are called postgres wait for',
    ],
    ['everyframe query waits --by thread --range 1m', 'which threads waited, in the last minute'],
    [
      'everyframe query top --type off_cpu --idle hide --where thread.state=blocked:lock',
      'functions that wait for locks, without pools that wait for work',
    ],
  ]);
}

function registerLabels(query: Command): void {
  const labels = add(
    query,
    'labels',
    'what --where and --by take: labels, and attributes of samples',
    'labels',
    ((answer: LabelsAnswer, { limit }) => labelsText(answer, limit)) as ToText,
  );
  addExamples(labels, [
    ['everyframe query labels', 'keys of a filter'],
    ['everyframe query labels --range all', 'with attributes of processes that ended'],
  ]);
  const values = add(query, 'values <label>', 'values of a label, with their samples', 'values', ((
    answer: ValuesAnswer,
  ) => valuesText(answer)) as ToText).option('--contains <TEXT>', 'only values that contain this text');
  addExamples(values, [
    ['everyframe query values process', 'what --where process= takes'],
    ['everyframe query values thread --where process=java --contains pool', 'threads of some processes'],
  ]);
}

function registerExport(query: Command): void {
  const command = transformed(ofTime(query.command('export')))
    .description('write what is seen to a file, as pprof, a page, a picture, …')
    .requiredOption('-o, --output <FILE>', 'the file, - for standard output; its ending shows the format')
    .option('--format <FORMAT>', 'the format, where the ending does not tell it: pprof, folded, html, svg, …')
    .option('--force', 'overwrite the output if it exists')
    .option('--type <TYPE>', 'type of the samples, as query types lists them (default: cpu)')
    .action(async (_words: string[], _flags: Flags, command: Command) => {
      const flags = flagsOf(command) as Flags & ExportFlags;
      const { exportFile } = await import('../query/export-file.ts');
      const { limit: _, ...query } = toQuery('export', flags, undefined);
      await exportFile(flags, query, flags);
    });
  addExamples(command, [
    ['everyframe query export -o last-hour.pb.gz --range 1h', 'for pprof'],
    ['everyframe query export -o node.html --where process=node', 'a page that opens without a network'],
  ]);
}

const transformed = (command: Command): Command =>
  command
    .option('--transform <LIST>', 'changes of the stacks, such as: focus=main hide~^std:: only=mine')
    .addOption(withChoices(new Option('--idle <MODE>', IDLE_HELP), IDLE_MODES));

const add = (...command: Parameters<typeof untyped>): Command =>
  untyped(...command).option(
    '--type <TYPE>',
    'type of the samples, as query types lists them (default: cpu)',
  );

/** Of samples of all types. */
function untyped(query: Command, usage: string, description: string, path: string, toText: ToText): Command {
  return withTime(query.command(usage))
    .description(description)
    .action(async (...given: unknown[]) => {
      const command = given.at(-1) as Command;
      const flags = flagsOf(command);
      const query = toQuery(path, flags, command.args[0]);
      const answer = await ask<never>(flags, path, query);
      if (path === 'callers') await refuseUnknown(flags, query, answer);
      const hints = flags.json ? [] : await explainNothing(flags, query, answer);
      for (const line of hints) process.stderr.write(`${line}\n`);
      const text = flags.json
        ? JSON.stringify(answer, undefined, 2)
        : toText(answer, flags).map(printable).join('\n');
      process.stdout.write(`${text}\n`);
    });
}

/** Of what time and what collector, and how much. */
const withTime = (command: Command): Command =>
  ofTime(command)
    .addOption(
      new Option('--top, --limit <N>', 'lines of text, or entries of a list')
        .argParser(readLimit)
        .default(30),
    )
    .option('--json', "the API's answer as it is");

/** Its own, with words behind it in --where. */
function flagsOf(command: Command): Flags {
  const flags = command.opts<Flags>();
  const words = command.args.slice(command.registeredArguments.length - 1);
  const where = whereOf(flags.where, words);
  return where === undefined ? flags : { ...flags, where };
}

/** A filter stands last: behind the name of a function or a label. */
const ofTime = (command: Command): Command =>
  addCollectorFlags(command)
    .argument('[filter...]', 'as --where, a term each: process=node')
    .option('--from <TIME>', 'now, -5m, milliseconds since 1970, or ISO 8601')
    .option('--to <TIME>', 'end of the time (default: now)')
    .option('--range <LENGTH>', 'instead of --from: 60s, 15m, 6h, 7d, all (default: 15m)')
    .option(
      '--where <FILTER>',
      'such as: process=node,python3 host!=db1 thread~^worker cpu=0 k8s.pod.name=web-1 trace_id=4bf92f3577b34da6a3ce929d0e0e4736',
    );

function readLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (!(limit >= 1 && limit <= 10_000))
    throw new InvalidArgumentError('write a whole number from 1 to 10000.');
  return limit;
}

/** As text, a tree is cut after it came, so that what is left out can be told. */
function toQuery(path: string, flags: Flags, name: string | undefined): Query {
  const { from, to, range, where, type, by, limit, json } = flags;
  // first: what shows that threads are idle may be taken out by the others
  const transform =
    [flags.idle && `idle=${flags.idle}`, flags.transform].filter(Boolean).join(' ') || undefined;
  if (path === 'types') return { from, to, range, where };
  const isTree = path === 'tree' || path === 'callers';
  return {
    ...{ from, to, range, where, type, transform, by },
    ...(path === 'diff' ? baseOf(flags, Date.now()) : {}),
    function: path === 'callers' ? name : undefined,
    label: path === 'values' ? name : undefined,
    contains: flags.contains,
    limit: isTree && !json ? undefined : limit,
    steps: path === 'timeline' && !json ? TIMELINE_STEPS : undefined,
  };
}
