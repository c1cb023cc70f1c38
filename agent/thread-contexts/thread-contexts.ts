/**
 * Contexts of threads: which trace and span a thread works for, and attributes of that work, as OpenTelemetry's SDKs say it (OTEP
 * 4947). A process that has some says so in its own context; the variable that leads to them is looked for in its files, and
 * where its threads have that goes to BPF, which reads the contexts with the samples (ebpf/thread-context/read.h).
 */
import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { closeFile, type ForeignFiles } from '../processes/foreign-files.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import { type CodeMapping, codeMappings } from '../processes/mapped-files.ts';
import type { ProcessContext } from '../processes/process-context.ts';
import { THREAD_CONTEXT, ThreadContextKind } from '../records/records.gen.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Attachments } from '../tracer/attachments.ts';
import { THREAD_CONTEXTS } from '../tracer/sampler-part.ts';
import type { Samplers } from '../tracer/samplers.ts';
import { type ContextKeys, NO_KEYS } from '../traces/labels.ts';
import { WorkerClient } from '../workers/worker-client.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { placeVariable, type VariablePlace } from './place-variable.ts';
import { schemaOf, type ThreadContextSchema } from './schema.ts';
import type { FoundVariable, VariableRequest } from './variable-requests.ts';

export interface ThreadContextParts {
  files: ForeignFiles;
  reader: ForeignReader;
  workers: WorkerPool;
  tracer: { samplers: Pick<Samplers, 'add'>; attachments: Pick<Attachments, 'publish' | 'withdraw'> };
}

interface Known {
  process: ProcessIdentity;
  schema: ThreadContextSchema;
  keys: ContextKeys;
  isPublished: boolean;
  triesLeft: number;
  timer: NodeJS.Timeout | undefined;
}

/** As many as BPF's map holds. */
const MAX_PROCESSES = 1024;
/** A library may be loaded after the process has said that it will be. */
const TRIES = 5;
const RETRY_MS = 2000;
/** A program of a JVM, or a browser, has some 300. */
const MAX_FILES = 1024;
const MAX_CPU_MS = 5000;
const MAX_WAIT_MS = 20_000;

export class ThreadContexts {
  readonly stats = {
    /** Processes whose threads have contexts that BPF reads. */
    processes: 0,
    /** That say so, but have no such variable (yet), or nothing leads to it. */
    notFound: 0,
    /** That BPF's map has no room for. */
    leftOut: 0,
  };
  readonly #parts: ThreadContextParts;
  readonly #client: WorkerClient<VariableRequest, FoundVariable | undefined>;
  readonly #known = new Map<Pid, Known>();
  /** By file and name of the variable; most files have none. */
  readonly #variables = new LRUCache<string, { found: FoundVariable | undefined }>({ max: 4096 });
  #lastKeys = NO_KEYS.id;
  #isStopped = false;

  constructor(parts: ThreadContextParts) {
    this.#parts = parts;
    this.#client = new WorkerClient(parts.workers, {
      kind: 'thread-local',
      maxCpuMs: MAX_CPU_MS,
      maxWaitMs: MAX_WAIT_MS,
    });
  }

  /** Keys of the attributes of its threads' contexts; none where it is not known. */
  keysOf(pid: Pid): ContextKeys {
    return this.#known.get(pid)?.keys ?? NO_KEYS;
  }

  /** A process has published its context, or another one. */
  onContext(process: ProcessIdentity, { attributes }: Pick<ProcessContext, 'attributes'>): void {
    const schema = schemaOf(attributes);
    const known = this.#known.get(process.pid);
    if (schema && known?.isPublished && isSame(known.process, process) && hasPlaceOf(known.schema, schema)) {
      known.keys = this.#newKeys(schema);
      return;
    }
    this.onExit(process);
    if (!schema || this.#isStopped) return;
    if (this.#known.size >= MAX_PROCESSES) {
      this.stats.leftOut++;
      return;
    }
    const keys = this.#newKeys(schema);
    const begun = { process, schema, keys, isPublished: false, triesLeft: TRIES, timer: undefined };
    this.#known.set(process.pid, begun);
    void this.#try(begun);
  }

  #newKeys({ keys }: ThreadContextSchema): ContextKeys {
    return { names: keys, id: ++this.#lastKeys };
  }

  /** It has ended, or called exec. */
  onExit({ pid }: Pick<ProcessIdentity, 'pid'>): void {
    const known = this.#known.get(pid);
    if (!known) return;
    this.#known.delete(pid);
    clearTimeout(known.timer);
    if (!known.isPublished) return;
    this.stats.processes--;
    this.#parts.tracer.attachments.withdraw(THREAD_CONTEXTS, known.process);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const { timer } of this.#known.values()) clearTimeout(timer);
    await this.#client.stop();
  }

  async #try(known: Known): Promise<void> {
    const { process, schema } = known;
    known.triesLeft--;
    const [place] = await Promise.all([
      this.#find(process.pid, schema).catch(() => undefined),
      this.#parts.tracer.samplers.add(THREAD_CONTEXTS),
    ]);
    if (this.#isStopped || this.#known.get(process.pid) !== known) return;
    if (place) this.#publish(known, place);
    else if (known.triesLeft === 0) this.stats.notFound++;
    else known.timer = setTimeout(() => void this.#try(known), RETRY_MS * (TRIES - known.triesLeft)).unref();
  }

  #publish(known: Known, place: VariablePlace): void {
    const entry = encode(place, known.schema);
    known.isPublished = this.#parts.tracer.attachments.publish(THREAD_CONTEXTS, known.process, entry);
    if (known.isPublished) this.stats.processes++;
    else this.stats.leftOut++;
  }

  /** Rejects as the worker does. */
  async #find(pid: Pid, schema: ThreadContextSchema): Promise<VariablePlace | undefined> {
    const seen = new Set<string>();
    for (const mapping of codeMappings(pid, this.#parts.reader)) {
      if (seen.size >= MAX_FILES) return undefined;
      if (seen.has(mapping.path)) continue;
      seen.add(mapping.path);
      const found = await this.#variableIn(pid, mapping, schema.variable);
      if (!found || (found.variable.size !== schema.size && found.variable.size !== 0)) continue;
      return placeVariable(pid, found, mapping.start - found.codeAddress, this.#parts.files);
    }
    return undefined;
  }

  async #variableIn(
    pid: Pid,
    { link, offset }: CodeMapping,
    name: string,
  ): Promise<FoundVariable | undefined> {
    const file = await this.#parts.files.lookAt(link, true, { pid, device: 0 });
    if (typeof file === 'number') return undefined;
    try {
      const key = `${file.dev} ${file.ino} ${file.ctimeNs} ${file.mtimeNs} ${offset} ${name}`;
      const known = this.#variables.get(key);
      if (known) return known.found;
      if (file.fd < 0) return undefined;
      // no ELF file, or what the worker can't read
      const found = await this.#client
        .request({ fd: file.fd, name, codeOffset: offset })
        .catch(() => undefined);
      this.#variables.set(key, { found });
      return found;
    } finally {
      closeFile(file);
    }
  }
}

const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.execId === b.execId && a.startBoottimeNs === b.startBoottimeNs;

const hasPlaceOf = ({ variable, node }: ThreadContextSchema, other: ThreadContextSchema): boolean =>
  variable === other.variable && JSON.stringify(node) === JSON.stringify(other.node);

/** struct ef_thread_context. */
function encode({ module, offset, isMusl }: VariablePlace, { node }: ThreadContextSchema): Buffer {
  const entry = Buffer.alloc(THREAD_CONTEXT.bytes);
  entry.writeBigInt64LE(BigInt.asIntN(64, offset), THREAD_CONTEXT.offset);
  entry.writeUInt32LE(module, THREAD_CONTEXT.module);
  entry[THREAD_CONTEXT.kind] = node ? ThreadContextKind.NODE : ThreadContextKind.POINTER;
  entry[THREAD_CONTEXT.isMusl] = isMusl ? 1 : 0;
  if (!node) return entry;
  entry.writeUInt16LE(node.table, THREAD_CONTEXT.table);
  entry.writeUInt16LE(node.counts, THREAD_CONTEXT.counts);
  entry.writeUInt16LE(node.wrapped, THREAD_CONTEXT.wrapped);
  entry.writeUInt16LE(node.wrappedElse ?? 0, THREAD_CONTEXT.wrappedElse);
  entry.writeUInt16LE(node.record ?? 0, THREAD_CONTEXT.record);
  entry[THREAD_CONTEXT.isIndirect] = node.record === undefined ? 0 : 1;
  return entry;
}
