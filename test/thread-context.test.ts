/** OTEP 4947: samples have the span and the attributes of what their thread does at that moment, wherever the variable is that says so. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { toPid } from '../common/base/brand.ts';
import { compile, missingRights } from './support/fixtures.ts';
import { processContext } from './support/process-context.ts';
import { Recording } from './support/recording.ts';
import { spansOf } from './support/spans.ts';

const CONTEXT = processContext(
  { 'service.name': 'shop' },
  { 'threadlocal.schema_version': 'tlsdesc_v1_dev', 'threadlocal.attribute_key_map': ['user', 'http.route'] },
);
const SOURCES = { program: 'thread-context.c', variable: 'thread-context-variable.c' };
const SHARED = ['-O1', '-fPIC', '-shared'];
/** What compilers call the two ways to a variable of a library. */
const DIALECTS = process.arch === 'arm64' ? ['desc', 'trad'] : ['gnu2', 'gnu'];

describe.skipIf(missingRights)('contexts of threads', () => {
  let child: ChildProcess | undefined;

  afterEach(() => void child?.kill('SIGKILL'));

  it.each([
    ['of the program', undefined],
    ['of a library, by its descriptor', [`-mtls-dialect=${DIALECTS[0]}`]],
    ['of a library, by its number', [`-mtls-dialect=${DIALECTS[1]}`]],
    ['of a library, with the thread', ['-ftls-model=initial-exec']],
  ])('in a variable %s', async (_, flags) => {
    const program = compile(
      'thread-context-program',
      'gcc',
      ['-O1', '-pthread', '-rdynamic'],
      SOURCES.program,
      SOURCES.variable,
    );
    const late = compile(
      'thread-context-late',
      'gcc',
      ['-O1', '-pthread', '-Wl,--no-as-needed,-ldl'],
      SOURCES.program,
    );
    const args = flags && [
      compile(`thread-context${flags.join()}.so`, 'gcc', [...SHARED, ...flags], SOURCES.variable),
    ];
    const started = spawn(args ? late : program, [CONTEXT, ...(args ?? [])], { stdio: 'inherit' });
    child = started;
    const recording = await Recording.start({ targets: [toPid(started.pid!)] });
    try {
      const has = (name: string, key: string) => (spansOf(recording, started.pid!, name).get(key) ?? 0) > 0;
      await recording.until(() => has('serve_first', 'a1 b1 /first') && has('serve_second', 'a2 b2 /second'));
      recording.clear();
      await recording.until(() =>
        ['serve_first', 'serve_second', 'rest', 'work'].every((name) =>
          [...spansOf(recording, started.pid!, name).values()].some((count) => count > 100),
        ),
      );
      const only = (name: string): string[] => [...spansOf(recording, started.pid!, name).keys()];
      expect(only('serve_first')).toEqual(['a1 b1 /first']);
      expect(only('serve_second')).toEqual(['a2 b2 /second']);
      expect(only('rest')).toEqual(['']);
      expect(only('work')).toEqual(['']);
      expect(recording.controller.counters()).toMatchObject({ 'threadContexts.processes': 1 });
    } finally {
      await recording.stop();
    }
  });

  const NODE = processContext({}, { 'threadlocal.schema_version': 'nodejs_v1' });

  it.each([
    ['right', 'a1 b1'],
    ['circle', ''],
    ['buckets', ''],
    ['many-buckets', ''],
    ['far-entry', ''],
    ['attributes', ''],
    ['undefined', ''],
    ['kernel', ''],
    ['invalid', ''],
    ['gate', ''],
  ])('of what poses as Node and whose objects are: %s', async (kind, expected) => {
    const program = compile('thread-context-node', 'gcc', ['-O1', '-rdynamic'], 'thread-context-node.c');
    const started = spawn(program, [NODE, kind], { stdio: 'inherit' });
    child = started;
    const pid = started.pid!;
    const recording = await Recording.start({ targets: [toPid(pid)] });
    try {
      await recording.until(() => recording.controller.counters()['threadContexts.processes'] === 1);
      // what was sampled before BPF had it
      await recording.controller.flush();
      recording.clear();
      await recording.until(() => [...spansOf(recording, pid, 'serve').values()].some((count) => count > 50));
      expect([...spansOf(recording, pid, 'serve').keys()]).toEqual([expected]);
    } finally {
      await recording.stop();
    }
  });
});
