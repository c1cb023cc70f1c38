/** The commands as a person types them: real processes, real files, exit codes. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { get as httpsGet } from 'node:https';
import { constants } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WatchedAgent } from '../collector/status/status.ts';
import { readProfile } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const ANY_PORT = [
  '--grpc-listen',
  '127.0.0.1:0',
  '--http-listen',
  '127.0.0.1:0',
  '--page-listen',
  '127.0.0.1:0',
];

const ALL_CAPABILITIES = ['bpf', 'perfmon', 'sys_ptrace', 'dac_read_search', 'checkpoint_restore', 'syslog'];

interface Running {
  process: ChildProcess;
  output(): string;
  exited: Promise<{ code: number | null; output: string }>;
}

/** What is left of them when a test fails ends with the tests. */
const background: ChildProcess[] = [];

function start(command: string, ...args: string[]): Running {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  background.push(child);
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  child.stderr.on('data', (data) => {
    output += data;
  });
  const exited = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, output }));
  });
  return { process: child, output: () => output, exited };
}

const everyframe = (...args: string[]): Running => start(EVERYFRAME, ...args);

async function until<T>(get: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    const value = await get();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`waited a minute for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Of all threads: permitted, effective, bounding and ambient set, and whether privileges can't grow; each once. */
const rightsOf = (pid: number): string[] => [
  ...new Set(
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
      const fields = ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs'];
      return fields
        .map((name) => BigInt(`0x${new RegExp(`^${name}:\\t(.*)$`, 'm').exec(status)![1]}`).toString(16))
        .join(' ');
    }),
  ),
];

const file = (name: string): string => join(scratchFolder, name);
const load = (name: string): Profile => readProfile(name, readFileSync(file(name)));

/** Whether an address, as `file+0xaddress`, is in the code where a file's execution begins: `_start`, if it had symbols. */
function entryOf(path: string): (address: string) => boolean {
  const entry = Number(readFileSync(path).readBigUInt64LE(24));
  const name = basename(realpathSync(path));
  return (address) => {
    const [, file, hex] = /^(.*)\+0x([0-9a-f]+)$/.exec(address) ?? [];
    const offset = Number.parseInt(hex ?? '', 16) - entry;
    return file === name && offset >= 0 && offset < 64;
  };
}

const samplesOf = (profile: Profile): number => profile.samples.reduce((sum, { value }) => sum + value, 0);

describe.skipIf(missingRights)('everyframe', () => {
  let deep: string;
  let busy: ChildProcess;

  beforeAll(() => {
    deep = compile('deep-cli', 'gcc', ['-O2', '-fomit-frame-pointer'], 'deep.c');
    busy = spawn(deep, ['40'], { stdio: 'ignore' });
    background.push(busy);
  });
  afterAll(() => {
    for (const child of background) child.kill('SIGKILL');
  });

  describe('record', () => {
    it('passes the exit code of the command through', async () => {
      const { code } = await everyframe('record', '-o', file('exit.folded'), '--', 'sh', '-c', 'exit 7')
        .exited;
      expect(code).toBe(7);
      expect(existsSync(file('exit.folded'))).toBe(true);
    });

    it('ends a command that does not want to end', async () => {
      const script = 'trap "" TERM; while :; do sleep 0.1; done';
      const { code } = await everyframe(
        'record',
        '-d',
        '1s',
        '-o',
        file('ends.folded'),
        '--',
        'sh',
        '-c',
        script,
      ).exited;
      expect(code).toBe(128 + constants.signals.SIGKILL);
      expect(existsSync(file('ends.folded'))).toBe(true);
    });

    it('profiles a command and nothing else, from its first instruction', async () => {
      const script = `timeout 3 ${deep} 40; exit 3`;
      const { code, output } = await everyframe(
        'record',
        '-F',
        '997',
        '-o',
        file('command.pb.gz'),
        '--',
        'sh',
        '-c',
        script,
      ).exited;
      expect(code, output).toBe(3);
      const profile = load('command.pb.gz');
      expect(samplesOf(profile)).toBeGreaterThan(50);
      const names = new Set(profile.processes.map((p) => p.executableName).filter((name) => name !== ''));
      expect(
        [...names].every((name) => ['deep-cli', 'sh', 'dash', 'bash', 'timeout'].includes(name)),
        [...names].join(),
      ).toBe(true);
      const report = await everyframe('report', file('command.pb.gz'), '--by', 'function').exited;
      expect(report.output).toMatch(/^[\d,]+ samples/);
      expect(Number(/^([\d.]+)% recurse\(\)$/m.exec(report.output)?.[1])).toBeGreaterThan(60);
    });

    it('has whole stacks of a command that nobody has seen before, from its first sample on', async () => {
      const { code, output } = await everyframe(
        ...['record', '-F', '497', '-o', file('fresh.folded'), '--', deep, '40', '900'],
      ).exited;
      expect(code, output).toBe(0);
      const profile = load('fresh.folded');
      expect(samplesOf(profile)).toBeGreaterThan(200);
      // also of the shell that becomes the command, and of the dynamic linker
      const entries = ['/bin/sh', '/lib64/ld-linux-x86-64.so.2'].map(entryOf);
      const isWhole = ([root]: string[]): boolean =>
        root === '_start' || entries.some((isEntry) => isEntry(root!));
      const cut = profile.samples.filter((s) => !isWhole(stackNames(profile, s.stack)));
      const lacking = cut.reduce((sum, { value }) => sum + value, 0);
      expect(lacking, JSON.stringify(cut.map((s) => stackNames(profile, s.stack)).slice(0, 3))).toBeLessThan(
        0.005 * samplesOf(profile),
      );
    });

    it.each(['stripped.pb.gz', 'stripped.otlp', 'stripped.firefox.json'])(
      'shows a function without a name as one, where nm had it: %s',
      async (name) => {
        const symbols = execFileSync('nm', [deep], { encoding: 'latin1' });
        const begin = Number.parseInt(/^([0-9a-f]+) T spin$/m.exec(symbols)![1]!, 16);
        const stripped = join(scratchFolder, 'stripped');
        execFileSync('strip', ['-o', stripped, deep]);
        const { code, output } = await everyframe(
          ...['record', '-F', '497', '--force', '-o', file(name), '--', stripped, '1', '300'],
        ).exited;
        expect(code, output).toBe(0);
        const report = await everyframe('report', file(name), '--by', 'function').exited;
        const self = new RegExp(`^ +([\\d.]+)% +[\\d.]+% +stripped\\+0x${begin.toString(16)}$`, 'm');
        expect(Number(self.exec(report.output)?.[1]), report.output).toBeGreaterThan(60);
      },
    );

    it('ends with the page that it opened when it is told to', async () => {
      const recording = everyframe('record', '-d', '500ms', '--view', '-o', file('viewed.pb.gz'));
      const page = await until(
        () => /Open (http\S+)/.exec(recording.output())?.[1],
        'the address of the page',
      );
      expect((await fetch(page)).status).toBe(200);
      recording.process.kill('SIGTERM');
      expect(await recording.exited).toMatchObject({ code: 0 });
      await expect(fetch(page)).rejects.toThrow();
    });

    it.each(['chosen.otlp', 'chosen.folded'])('profiles a running process into %s', async (name) => {
      const pid = String(busy.pid);
      const { code, output } = await everyframe(
        ...['record', '-F', '997', '-d', '3s', '-p', pid, '-o', file(name)],
      ).exited;
      expect(code, output).toBe(0);
      const profile = load(name);
      expect(samplesOf(profile)).toBeGreaterThan(10);
      expect(new Set(profile.samples.map((s) => profile.processes[s.process]!.executableName))).toEqual(
        new Set(['deep-cli']),
      );
      const whole = profile.samples.filter(
        (s) => stackNames(profile, s.stack).filter((n) => n === 'recurse').length === 40,
      );
      expect(whole.length).toBeGreaterThan(0);
    });

    it('is read by go tool pprof', () => {
      if (!hasTool('go')) {
        console.log('skipped: go is not installed');
        return;
      }
      const top = execFileSync('go', ['tool', 'pprof', '-top', file('command.pb.gz')], {
        encoding: 'utf8',
        stdio: 'pipe',
      });
      expect(top).toMatch(/Type: cpu/);
      expect(top).toMatch(/ spin$/m);
    });

    it.each([
      ['record -o x.xyz', /x\.xyz.*\.pb\.gz/],
      [
        'record -o /nonexistent/x.folded -d 1h',
        /\/nonexistent\/x\.folded can't be written: there is no directory \/nonexistent$/m,
      ],
      [
        'support-bundle -o /nonexistent/x',
        /x can't be written: there is no directory \/nonexistent. .*-o - on standard output/,
      ],
      ['record --view -o x.svg -d 1h', /x\.svg is for looking at/],
      ['record -p 4000000', /4000000: there is no such process/],
      ['record --cgroup no-such.service', /--cgroup no-such\.service: there is no such cgroup/],
      ['record -p 1 --cgroup /', /-p PID and --cgroup were given/],
      ['record -p 12 34', /-p takes one PID or a list with commas: -p 12,34/],
      ['record 12 34', /12 34 is no command: is -p 12,34 meant\?/],
      ['record -d 1h --type off_cpu', /--type off_cpu: nothing of it is sampled: add --off-cpu/],
      ['record -d 1h --idle hide', /--idle: threads that wait are not sampled: add --off-cpu/],
      ['record -F often', /-F is "often": give a whole number/],
      ['recrod', /"recrod" is not a command \(is record meant\?\): everyframe --help lists them/],
    ])('says at once what is wrong with: %s', async (line, message) => {
      const ended = await everyframe(...line.split(' ')).exited;
      expect(ended).toMatchObject({ code: 1, output: expect.stringMatching(message) });
    });
  });

  describe('run', () => {
    const pageOf = (run: Running): Promise<string> =>
      until(() => /"page":"([^"]+)"/.exec(run.output())?.[1], `the address of the page in: ${run.output()}`);
    const shows = (page: string, program: string): Promise<true> =>
      until(async () => {
        const { values } = (await (
          await fetch(new URL('api/v1/values?label=process&range=60s', page))
        ).json()) as { values: { value: string }[] };
        return values.some(({ value }) => value === program) || undefined;
      }, `${program} on the page`);
    const childOf = (pid: number, text: string): number =>
      Number(execFileSync('pgrep', ['-P', String(pid), '-f', text], { encoding: 'utf8' }).trim());
    const agentOf = (run: Running): number => childOf(run.process.pid!, 'sampling.cjs');
    const collectorOf = (run: Running): number => childOf(agentOf(run), 'collector');
    const watched = async (run: Running): Promise<WatchedAgent> => {
      const status = await fetch(new URL('/api/v1/status', await pageOf(run)));
      return ((await status.json()) as { agent: WatchedAgent }).agent;
    };

    it('shows the machine on its page, beside a second agent, and ends with Ctrl-C', async () => {
      const run = everyframe('run', '-samples-per-second', '97', '--reporter-interval', '1s', ...ANY_PORT);
      const page = await pageOf(run);
      expect(await (await fetch(page)).text()).toContain('id="app"');
      const second = everyframe('record', '-d', '2s', '-o', file('second.folded'));
      await shows(page, 'deep-cli');
      expect((await second.exited).code).toBe(0);
      expect(readFileSync(`/proc/${collectorOf(run)}/status`, 'utf8')).toMatch(/^Uid:\t65534\t65534/m);
      expect(rightsOf(collectorOf(run))).toEqual(['0 0 0 0 1']);
      const kept = '1c400080004'; // bits 2, 19, 34, 38, 39, 40
      expect(rightsOf(agentOf(run))).toEqual([`${kept} ${kept} ${kept} 0 1`]);
      run.process.kill('SIGINT');
      const ended = await run.exited;
      expect(ended).toMatchObject({ code: 0 });
      for (const line of ended.output.trim().split('\n')) expect(() => JSON.parse(line), line).not.toThrow();
    });

    it('shows the first second before its interval has ended', async () => {
      const run = everyframe('run', '-samples-per-second', '97', '--reporter-interval', '10m', ...ANY_PORT);
      await shows(await pageOf(run), 'deep-cli');
      run.process.kill('SIGINT');
      expect(await run.exited).toMatchObject({ code: 0 });
    });

    it('shows a chosen process alone, and stays when that has ended', async () => {
      const other = spawn(deep, ['40'], { stdio: 'ignore' });
      background.push(other);
      const run = everyframe('run', '-p', String(other.pid), '--reporter-interval', '1s', ...ANY_PORT);
      const page = await pageOf(run);
      await shows(page, 'deep-cli');
      const values = await fetch(new URL('api/v1/values?label=pid&range=60s', page));
      expect(await values.json()).toMatchObject({ values: [{ value: String(other.pid) }] });
      other.kill('SIGKILL');
      await until(() => run.output().includes('what was chosen has ended') || undefined, 'its line');
      expect((await fetch(page)).ok).toBe(true);
      run.process.kill('SIGINT');
      expect(await run.exited).toMatchObject({ code: 0 });
    });

    it('keeps samples in a directory of the user whom the collector becomes, and has them after a restart', async () => {
      const [parent, locked] = [file('kept'), file('locked')];
      mkdirSync(parent, { mode: 0o711 });
      mkdirSync(locked, { mode: 0o700 });
      chmodSync(scratchFolder, 0o711);
      const flags = ['run', '--reporter-interval', '1s', '--data', join(parent, 'data'), ...ANY_PORT];
      const oldest = async (run: Running): Promise<number | undefined> => {
        const health = await fetch(new URL('/api/v1/status', await pageOf(run)));
        return ((await health.json()) as { store: { oldestMs?: number } }).store.oldestMs;
      };
      const first = everyframe(...flags);
      const since = await until(() => oldest(first), 'stored samples');
      first.process.kill('SIGINT');
      expect(await first.exited).toMatchObject({ code: 0 });
      expect(statSync(join(parent, 'data/everyframe.duckdb')).uid).toBe(statSync(join(parent, 'data')).uid);
      expect(statSync(join(parent, 'data')).uid).not.toBe(0);
      const second = everyframe(...flags);
      expect(await oldest(second)).toBe(since);
      second.process.kill('SIGINT');
      expect(await second.exited).toMatchObject({ code: 0 });

      const refused = everyframe('run', '--data', join(locked, 'data'), ...ANY_PORT);
      expect(await refused.exited).toMatchObject({
        code: 1,
        output: expect.stringMatching(/user nobody, whom the collector becomes, may not enter .*locked/),
      });
    });

    it('sends its own samples with the token that everyone needs, under TLS', async () => {
      const [cert, key, token] = ['cert.pem', 'key.pem', 'token'].map(file) as [string, string, string];
      const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
      const name = ['-subj', '/CN=example', '-addext', 'subjectAltName=IP:127.0.0.1'];
      execFileSync('openssl', ['req', '-x509', ...made, ...name, '-keyout', key, '-out', cert]);
      writeFileSync(token, 'f00dfacef00dface\n');
      const access = ['--tls-cert', cert, '--tls-key', key, '--token-file', token];
      const run = everyframe('run', '--reporter-interval', '1s', ...access, ...ANY_PORT);
      const url = new URL('api/v1/values?label=process&range=60s', await pageOf(run));
      const ask = (headers: Record<string, string>): Promise<string> =>
        new Promise((resolve, reject) => {
          const request = httpsGet(url, { ca: readFileSync(cert), headers }, (response) => {
            let text = '';
            response.setEncoding('utf8').on('data', (part: string) => {
              text += part;
            });
            response.once('end', () => resolve(text));
          });
          request.once('error', reject);
        });
      expect(await ask({})).toMatch(/a token is needed/);
      const authorization = 'Bearer f00dfacef00dface';
      await until(
        async () => (await ask({ authorization })).includes('"deep-cli"') || undefined,
        'the busy program on the page',
      );
      run.process.kill('SIGINT');
      expect(await run.exited).toMatchObject({ code: 0 });
    });

    it('starts an agent again that died, and the collector and its samples live on', async () => {
      const run = everyframe('run', '--reporter-interval', '1s', ...ANY_PORT);
      await shows(await pageOf(run), 'deep-cli');
      const collector = collectorOf(run);
      expect(await watched(run)).toMatchObject({ state: 'running', restarts: 0 });
      process.kill(agentOf(run), 'SIGKILL');
      const lastExit = { code: null, signal: 'SIGKILL', atMs: expect.any(Number) };
      const isBack = async (): Promise<boolean> => {
        const { state, restarts } = await watched(run);
        return state === 'running' && restarts === 1;
      };
      await until(async () => (await isBack()) || undefined, 'the next agent');
      expect(await watched(run)).toMatchObject({ lastExit });
      expect(readFileSync(`/proc/${collector}/stat`, 'latin1')).toContain(` ${run.process.pid} `);
      await until(() => run.output().includes('the agent samples again') || undefined, 'its line');
      run.process.kill('SIGINT');
      expect(await run.exited).toMatchObject({
        code: 0,
        output: expect.stringMatching(/the agent ended \(SIGKILL.*starts again in 1 s/),
      });
      expect(existsSync(`/proc/${collector}`)).toBe(false);
    });

    it('starts both again when the collector ends by itself', async () => {
      const run = everyframe('run', ...ANY_PORT);
      await pageOf(run);
      process.kill(collectorOf(run), 'SIGKILL');
      await until(() => run.output().split('"page":').length > 2 || undefined, 'the next page');
      expect(run.output()).toMatch(/the collector ended by itself \(SIGKILL\)/);
      run.process.kill('SIGTERM');
      expect(await run.exited).toMatchObject({ code: 0 });
    });

    it('takes its collector along when it is killed', async () => {
      const run = everyframe('run', ...ANY_PORT);
      await pageOf(run);
      const collector = collectorOf(run);
      run.process.kill('SIGKILL');
      await until(() => !existsSync(`/proc/${collector}`) || undefined, 'the end of the collector');
      expect((await run.exited).output).toMatch(/process that started this collector is gone/);
    });
  });

  it('samples with exactly the capabilities that it documents', async () => {
    const caps = ['-all', ...ALL_CAPABILITIES.map((name) => `+${name}`)].join(',');
    const { code, output } = await start(
      ...(['setpriv', '--inh-caps', caps, '--bounding-set', caps, EVERYFRAME] as const),
      ...['record', '-d', '2s', '-F', '497', '-p', String(busy.pid), '-o', file('caps.folded')],
    ).exited;
    expect(code, output).toBe(0);
    expect(samplesOf(load('caps.folded'))).toBeGreaterThan(10);
    expect(output).not.toMatch(/missing/);
  });

  it.each([
    ['bpf', 1, 'CAP_BPF is missing: BPF programs and maps cannot be loaded. Run as root'],
    ['perfmon', 1, 'CAP_PERFMON is missing: CPUs cannot be sampled, and BPF may not read kernel memory. Run'],
    ['sys_ptrace', 0, 'CAP_SYS_PTRACE is missing: files of processes of other users cannot be opened'],
    ['dac_read_search', 0, 'CAP_DAC_READ_SEARCH is missing: executables that this user may not read'],
    ['checkpoint_restore', 0, 'CAP_CHECKPOINT_RESTORE is missing: files deleted or replaced while mapped'],
    // not missed where the kernel shows its symbols to everybody; the doctor's test tells the two apart
    ['syslog', 0, ''],
  ])('without CAP_%s ends with %i and says what that costs', async (name, exitCode, sentence) => {
    const rest = ALL_CAPABILITIES.filter((other) => other !== name).map((other) => `+${other}`);
    const caps = ['-all', ...rest].join(',');
    const { code, output } = await start(
      ...(['setpriv', '--inh-caps', caps, '--bounding-set', caps, EVERYFRAME] as const),
      ...['record', '-d', '300ms', '-p', String(busy.pid), '-o', file(`without-${name}.folded`)],
    ).exited;
    expect(output).toContain(sentence);
    expect(code, output).toBe(exitCode);
    expect(existsSync(file(`without-${name}.folded`))).toBe(exitCode === 0);
  });
});
