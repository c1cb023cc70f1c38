/**
 * Captures a process for unwinders.test.ts: `make build/unwinders && node dist/test/unwinders/capture.js NAME[@THREAD] COMMAND…`
 * as root. The command's first output says that it is where it should be. Its main thread, or that of the name, is stopped and unwound
 * by the unwinders themselves over its live memory; what they read of it is kept, with what it takes to name the frames.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { FrameKind, PROCESS_ID, PROCESS_RUNTIMES } from '../../agent/records/records.gen.ts';
import { CapturedFile, hex, hexOf, pageOf } from './captured-file.ts';
import { type Frame, framesOf, parseCase, parseStacks, textOf } from './case.ts';
import { NotedMemory } from './noted-memory.ts';

const ROOT = join(import.meta.dirname, '../../..');
const MAX_FRAMES = 1023;

interface Mapping {
  start: number;
  end: number;
  offset: number;
  path: string;
}

function executableMappings(pid: number): Mapping[] {
  return readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .flatMap((line): Mapping[] => {
      const match = /^(\w+)-(\w+) ..x. (\w+) \S+ \d+\s*(.*)$/.exec(line);
      if (!match) return [];
      const [start, end, offset] = match.slice(1, 4).map((text) => Number.parseInt(text, 16));
      return [{ start: start!, end: end!, offset: offset!, path: match[4]! }];
    });
}

/** By path. */
function readFiles(pid: number, mappings: readonly Mapping[]): Map<string, CapturedFile> {
  const files = new Map<string, CapturedFile>();
  for (const { path } of mappings) {
    // what is written at run time, as by a JIT, is not an executable
    if (!path.startsWith('/') || path.startsWith('/memfd:') || files.has(path)) continue;
    files.set(path, new CapturedFile(hex(0x100 + files.size), `/proc/${pid}/root${path}`, path));
  }
  return files;
}

/** Where offset 0 of the file would be. */
function baseOf(mappings: readonly Mapping[], path: string): number {
  const { start, offset } = mappings.find((mapping) => mapping.path === path)!;
  return start - offset;
}

const mappingLine = ({ start, end, offset, path }: Mapping, files: Map<string, CapturedFile>): string => {
  const delta = BigInt.asUintN(64, BigInt(offset) - BigInt(start)).toString(16);
  return `mapping ${hex(start)} ${hex(end)} ${delta} ${files.get(path)?.key ?? '0'}`;
};

const unwind = (mode: string[], text: string): string =>
  execFileSync(join(ROOT, 'build/unwinders'), mode, { input: text, encoding: 'utf8', maxBuffer: 256 << 20 });

/** Lines that begin with `what`, without it, each once. */
const linesOf = (output: string, what: string): string[] => [
  ...new Set(
    output.split('\n').flatMap((line) => (line.startsWith(`${what} `) ? [line.slice(what.length + 1)] : [])),
  ),
];

/** Offsets of the file's native frames. */
const offsetsOf = (file: CapturedFile, frames: readonly Frame[]): Set<number> =>
  new Set(
    frames.flatMap(({ kind, operand, second }) =>
      kind === FrameKind.FILE && second.toString(16) === file.key ? [Number(operand)] : [],
    ),
  );

/** Pages of the file that the frames or the captured memory point into: where any unwinding can get to. */
function pagesOf(
  file: CapturedFile,
  frames: readonly Frame[],
  memory: NotedMemory,
  mappings: readonly Mapping[],
): Set<number> {
  const pages = new Set([...offsetsOf(file, frames)].map(pageOf));
  memory.forEachWord((word) => {
    const mapping = mappings.find(({ start, end }) => word >= start && word < end);
    if (mapping) pages.add(pageOf(word - mapping.start + mapping.offset));
  });
  return pages;
}

/** host.c's TGID. */
const TGID = 4242;

/** Which runtimes the process is known to have: code that no file backs is theirs also where it is the innermost. */
function runtimesLine(files: readonly CapturedFile[]): string {
  const key = Buffer.alloc(PROCESS_ID.bytes);
  key.writeUInt32LE(TGID, PROCESS_ID.tgid);
  const known = files.flatMap(({ plugin, key: file }) => (plugin ? [{ id: plugin.id, file }] : []));
  // not the mappings, which stand behind: there will be more runtimes
  const value = Buffer.alloc(PROCESS_RUNTIMES.deltas);
  for (const { id, file } of known) {
    value.writeUInt32LE(value.readUInt32LE(PROCESS_RUNTIMES.detected) | (1 << id), PROCESS_RUNTIMES.detected);
    value.writeBigUInt64LE(BigInt(`0x${file}`), PROCESS_RUNTIMES.files + id * 8);
  }
  return `entry process_runtimes ${hexOf(key)} ${hexOf(value)}`;
}

/** Its main one, where no name is given. */
function threadOf(pid: number, name: string | undefined): number {
  if (name === undefined) return pid;
  const isNamed = (tid: string): boolean =>
    readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim() === name;
  const found = readdirSync(`/proc/${pid}/task`).find(isNamed);
  if (found === undefined) throw new Error(`the process has no thread ${name}`);
  return Number(found);
}

/** The stopped process as a case. */
function captureStopped(pid: number, thread: number, said: string): string {
  const mappings = executableMappings(pid);
  const files = readFiles(pid, mappings);
  const all = [...files.values()];
  const runtimes = all.reduce((mask, { plugin }) => (plugin ? mask | (1 << plugin.id) : mask), 0);
  const config = `config ${hex(MAX_FRAMES)} ${hex(runtimes)}`;
  const memory = new NotedMemory(pid);
  const attached = [...files].flatMap(([path, file]) => file.attach(memory, baseOf(mappings, path)));
  const output = unwind(
    ['live', String(thread)],
    [
      config,
      runtimesLine(all),
      ...mappings.map((mapping) => mappingLine(mapping, files)),
      ...all.flatMap((file) => [...file.entryLines(), ...file.allBlockLines()]),
      ...attached,
    ].join('\n'),
  );
  const frames = framesOf(parseStacks(output)[0]!.words);
  for (const line of linesOf(output, 'used-memory')) {
    const [address, length] = line.split(' ').map((text) => Number.parseInt(text, 16));
    memory.note(address!, length!);
  }
  const usedMappings = linesOf(output, 'used-mapping');
  const used = all.filter(
    ({ key, plugin }) => plugin || usedMappings.some((line) => line.endsWith(` ${key}`)),
  );
  const names = used.flatMap((file) => file.nameLines(offsetsOf(file, frames)));
  // naming reads memory, too, and so notes it
  const expected = textOf(frames, { ...parseCase(names.join('\n')), memory });
  return [
    ...names,
    config,
    runtimesLine(all),
    `registers ${linesOf(output, 'registers')[0]}`,
    ...usedMappings.map((line) => `mapping ${line}`),
    ...used.flatMap((file) => {
      const own = mappings.filter(({ path }) => files.get(path) === file);
      const blocks = linesOf(output, `used-block ${file.key}`).map((block) => Number.parseInt(block, 16));
      return [...file.entryLines(), ...file.blockLines(blocks, pagesOf(file, frames, memory, own))];
    }),
    ...attached,
    ...memory.pieces().map(({ start, bytes }) => `memory ${hex(start)} ${hexOf(bytes)}`),
    `#said ${said}`,
    ...expected.map((line) => `#expect ${line}`),
    '',
  ].join('\n');
}

async function main(title: string, command: string[]): Promise<void> {
  const [name, thread] = title.split('@');
  // none of the variables of whoever captures
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {},
    cwd: '/',
  });
  const pid = child.pid!;
  try {
    const said = ((await once(child.stdout, 'data')) as [Buffer])[0].toString().trimEnd();
    await sleep(1000 + Math.random() * 50);
    process.kill(pid, 'SIGSTOP');
    while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await sleep(1);
    const text = captureStopped(pid, threadOf(pid, thread), said);
    const replayed = parseCase(text);
    const frames = textOf(framesOf(parseStacks(unwind(['run'], text))[0]!.words), replayed).join('\n');
    if (frames !== replayed.expected.join('\n'))
      throw new Error(`it replays as\n${frames}\nnot\n${replayed.expected.join('\n')}`);
    const folder = join(ROOT, 'test/unwinders/cases');
    mkdirSync(folder, { recursive: true });
    const compressed = gzipSync(text, { level: 9 });
    writeFileSync(join(folder, `${name}.gz`), compressed);
    console.log(`${said}\n\n${frames}\n\n${name}.gz: ${compressed.length} bytes`);
  } finally {
    child.kill('SIGKILL');
  }
}

const [title, ...command] = process.argv.slice(2);
if (!title || command.length === 0) throw new Error('usage: capture.js NAME[@THREAD] COMMAND…');
await main(title, command);
