/**
 * pprof's profile.proto, gzipped. Two values a sample: how many, and the CPU time that they stand for. Process and
 * thread are labels. The wire format is pprof-format's; see docs/decisions.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { Profile as Pprof, StringTable } from 'pprof-format';
import { processName } from './frame-name.ts';
import { emptyMapping, emptyProcess, emptyProfile, type Profile, type Sample } from './profile.ts';

const KERNEL_FILE = '[kernel.kallsyms]';
const MAX_BYTES = 1 << 30;

export function writePprof(profile: Profile): Uint8Array {
  const strings = new StringTable();
  const s = (text: string): number => strings.dedup(text);
  const isKernelMapping = new Set(
    profile.locations.filter((l) => l.frameType === 'kernel').map((l) => l.mapping),
  );
  const label = (key: string, value: string): { key: number; str: number }[] =>
    value === '' ? [] : [{ key: s(key), str: s(value) }];
  const pprof = new Pprof({
    stringTable: strings,
    sampleType: [
      { type: s('samples'), unit: s('count') },
      { type: s('cpu'), unit: s('nanoseconds') },
    ],
    defaultSampleType: s('cpu'),
    periodType: { type: s(profile.periodType.type), unit: s(profile.periodType.unit) },
    period: profile.period,
    timeNanos: profile.timeUnixNano,
    durationNanos: profile.durationNano,
    mapping: profile.mappings.slice(1).map((m, i) => ({
      id: i + 1,
      memoryStart: m.memoryStart,
      memoryLimit: m.memoryLimit,
      fileOffset: m.fileOffset,
      filename: s(isKernelMapping.has(i + 1) ? kernelFile(m.filename) : m.filename),
      buildId: s(m.gnuBuildId || m.goBuildId),
      hasFunctions: true,
    })),
    function: profile.functions.slice(1).map((f, i) => ({
      id: i + 1,
      name: s(f.name),
      systemName: s(f.systemName || f.name),
      filename: s(f.filename),
      startLine: f.startLine,
    })),
    location: profile.locations.slice(1).map((l, i) => ({
      id: i + 1,
      mappingId: l.mapping,
      address: l.address,
      line: l.lines.map((line) => ({ functionId: line.func, line: line.line, column: line.column })),
    })),
    sample: profile.samples.map((sample) => ({
      locationId: [...profile.stacks[sample.stack]!],
      value: [sample.count, BigInt(sample.count) * profile.period],
      label: [
        { key: s('pid'), num: profile.processes[sample.process]!.pid },
        { key: s('tid'), num: sample.tid },
        ...label('thread', sample.threadName),
        ...label('process', processName(profile, sample.process)),
      ],
    })),
  });
  return gzipSync(pprof.encode());
}

/** perf's names: the kernel's own, and modules in brackets. */
const kernelFile = (name: string): string => (name === 'vmlinux' ? KERNEL_FILE : `[${name}]`);

/** @throws Error for what is no pprof file */
export function readPprof(bytes: Uint8Array): Profile {
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const pprof = Pprof.decode(isGzip ? gunzipSync(bytes, { maxOutputLength: MAX_BYTES }) : bytes);
  return new PprofReader(pprof).read();
}

class PprofReader {
  readonly #pprof: Pprof;
  readonly #profile = emptyProfile();
  readonly #mappings = new Map<number, number>([[0, 0]]);
  readonly #functions = new Map<number, number>([[0, 0]]);
  readonly #locations = new Map<number, number>([[0, 0]]);
  readonly #processes = new Map<string, number>();

  constructor(pprof: Pprof) {
    this.#pprof = pprof;
  }

  read(): Profile {
    const { mapping, location, sample, periodType, period, timeNanos, durationNanos } = this.#pprof;
    const profile = this.#profile;
    for (const m of mapping) this.#mappings.set(Number(m.id), profile.mappings.push(this.#mapping(m)) - 1);
    for (const f of this.#pprof.function) {
      const [name, systemName] = [this.#string(f.name), this.#string(f.systemName)];
      const entry = {
        name,
        systemName: systemName === name ? '' : systemName,
        filename: this.#string(f.filename),
        startLine: Number(f.startLine),
      };
      this.#functions.set(Number(f.id), profile.functions.push(entry) - 1);
    }
    for (const l of location) this.#addLocation(l);
    profile.period = BigInt(period);
    profile.timeUnixNano = BigInt(timeNanos);
    profile.durationNano = BigInt(durationNanos);
    if (periodType)
      profile.periodType = { type: this.#string(periodType.type), unit: this.#string(periodType.unit) };
    profile.samples = sample.map((one) => this.#sample(one));
    return profile;
  }

  #string(index: number | bigint): string {
    return this.#pprof.stringTable.strings[Number(index)] ?? '';
  }

  #mapping(m: Pprof['mapping'][number]): Profile['mappings'][number] {
    const filename = this.#string(m.filename);
    return {
      ...emptyMapping(),
      memoryStart: BigInt(m.memoryStart),
      memoryLimit: BigInt(m.memoryLimit),
      fileOffset: BigInt(m.fileOffset),
      filename: isKernelFile(filename)
        ? filename.slice(1, -1).replace('kernel.kallsyms', 'vmlinux')
        : filename,
      gnuBuildId: this.#string(m.buildId),
    };
  }

  #addLocation(l: Pprof['location'][number]): void {
    const wireMapping = this.#pprof.mapping.find((m) => Number(m.id) === Number(l.mappingId));
    const isKernel = wireMapping !== undefined && isKernelFile(this.#string(wireMapping.filename));
    const index =
      this.#profile.locations.push({
        mapping: this.#mappings.get(Number(l.mappingId)) ?? 0,
        address: BigInt(l.address),
        frameType: isKernel ? 'kernel' : 'native',
        lines: l.line.map((line) => ({
          func: this.#functions.get(Number(line.functionId)) ?? 0,
          line: Number(line.line),
          column: Number(line.column),
        })),
      }) - 1;
    this.#locations.set(Number(l.id), index);
  }

  #sample(sample: Pprof['sample'][number]): Sample {
    const labels = new Map(
      sample.label.map((l) => [this.#string(l.key), this.#string(l.str) || Number(l.num)]),
    );
    const locations = Uint32Array.from(sample.locationId, (id) => this.#locations.get(Number(id)) ?? 0);
    return {
      stack: locations.length === 0 ? 0 : this.#profile.stacks.push(locations) - 1,
      process: this.#process(Number(labels.get('pid') ?? 0), String(labels.get('process') ?? '')),
      tid: Number(labels.get('tid') ?? 0),
      threadName: String(labels.get('thread') ?? ''),
      cpu: -1,
      count: Number(sample.value[0] ?? 1),
      timestamps: [],
    };
  }

  #process(pid: number, name: string): number {
    const key = `${pid}\0${name}`;
    let index = this.#processes.get(key);
    if (index === undefined) {
      index = this.#profile.processes.push({ ...emptyProcess(), pid, executableName: name }) - 1;
      this.#processes.set(key, index);
    }
    return index;
  }
}

const isKernelFile = (name: string): boolean => /^\[[\w.-]+\]$/.test(name) && !/^\[(vdso|anon)\]$/.test(name);
