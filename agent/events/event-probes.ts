/**
 * Sets the probes of events in user code, and follows their files: a library that was replaced by an upgrade has other
 * places, and processes that start later have that one.
 */
import { realpathSync, statSync } from 'node:fs';
import { release } from 'node:os';
import { excerpt } from '../../common/base/printable.ts';
import { CannotProfile } from '../base/cannot-profile.ts';
import { identityOf } from '../files/root-directory.ts';
import { WorkerClient } from '../workers/worker-client.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { allocatorLibraries, probesOfAllocator } from './allocators.ts';
import { type EventSpec, isProbe, type ProbeSpec } from './event-spec.ts';
import { fieldsOf } from './probe-fields.ts';
import type { ProbeAnswer, ProbeRequest } from './probe-request.ts';
import type { ProbeProgram, ProbeSite, RefusedSite } from './probe-site.ts';
import { findProbedFile, withOpenFile } from './probed-file.ts';
import type { HiddenPython } from './python-allocator.ts';
import { returnProbeDanger } from './return-probes.ts';

export interface ProbeTarget {
  /** In place of those that the event had; returns those that the kernel refuses. Throws what it says otherwise. */
  setSites(event: number, sites: readonly ProbeSite[]): readonly RefusedSite[];
}

const MAX_CPU_MS = 20_000;
const MAX_WAIT_MS = 60_000;
const FOLLOW_MS = 5000;

interface Probe {
  event: number;
  spec: ProbeSpec;
  path: string;
  /** Of the file that has the probe. */
  identity: string;
  sites: readonly ProbeSite[];
}

export class EventProbes {
  readonly #client: WorkerClient<ProbeRequest, ProbeAnswer>;
  readonly #target: ProbeTarget;
  readonly #warn: (message: string) => void;
  readonly #probes: Probe[] = [];
  #isLooking = false;
  #timer: NodeJS.Timeout | undefined;
  readonly stats = { sites: 0, refused: 0, followed: 0, lost: 0 };

  constructor(pool: WorkerPool, target: ProbeTarget, warn: (message: string) => void) {
    this.#client = new WorkerClient(pool, {
      kind: 'probes',
      maxCpuMs: MAX_CPU_MS,
      maxWaitMs: MAX_WAIT_MS,
    });
    this.#target = target;
    this.#warn = warn;
  }

  /**
   * `events` by their numbers; `programs`: what the chosen processes run, which may have an allocator. Throws
   * {@link CannotProfile}.
   */
  async start(events: readonly EventSpec[], programs: readonly string[] = []): Promise<void> {
    for (const [event, spec] of events.entries()) {
      if (!isProbe(spec)) continue;
      for (const path of filesOf(spec, programs)) {
        const sites =
          spec.path === undefined ? await this.#tryFinding(spec, path) : await this.#find(spec, path);
        this.#probes.push({ event, spec, path, identity: identityAt(path), sites });
      }
      this.#warnOfReturns(event, spec);
      this.#set(event, spec);
    }
    if (this.#probes.length > 0) this.#timer = setInterval(() => void this.follow(), FOLLOW_MS).unref();
  }

  /** Looks whether a file was replaced. Never throws. */
  async follow(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    for (const probe of this.#probes) await this.#followFile(probe);
    this.#isLooking = false;
  }

  async #followFile(probe: Probe): Promise<void> {
    const identity = identityAt(probe.path);
    if (identity === '' || identity === probe.identity) return;
    probe.identity = identity;
    try {
      probe.sites = await this.#find(probe.spec, probe.path);
      this.#set(probe.event, probe.spec);
      this.stats.followed++;
    } catch (error) {
      this.stats.lost++;
      this.#warn(`${probe.spec.text}: ${probe.path} was replaced: ${(error as Error).message}`);
    }
  }

  #sitesOf(event: number): ProbeSite[] {
    return this.#probes.filter((probe) => probe.event === event).flatMap(({ sites }) => sites);
  }

  #warnOfReturns(event: number, { text }: ProbeSpec): void {
    const danger = this.#sitesOf(event).some(({ isAtReturn }) => isAtReturn)
      ? returnProbeDanger(release(), process.arch)
      : undefined;
    if (danger !== undefined) this.#warn(`${text}: ${danger}`);
  }

  /** Throws {@link CannotProfile} where the kernel refuses all of them. */
  #set(event: number, spec: ProbeSpec): void {
    const sites = this.#sitesOf(event);
    const refused = this.#target.setSites(event, sites);
    this.stats.sites += sites.length - refused.length;
    this.stats.refused += refused.length;
    if (refused.length === 0) return;
    const told = `${spec.text}: the kernel refuses ${refused.length} of its ${sites.length} probes: ${listRefused(refused)}`;
    if (refused.length === sites.length) throw new CannotProfile(told);
    this.#warn(told);
  }

  /** Nobody named the file: others of the program may have what is looked for. */
  async #tryFinding(spec: ProbeSpec, path: string): Promise<ProbeSite[]> {
    try {
      return await this.#find(spec, path);
    } catch (error) {
      this.stats.lost++;
      // its process has ended
      if (identityAt(path) !== '') this.#warn(`${spec.text}: ${(error as Error).message}`);
      return [];
    }
  }

  async #find(spec: ProbeSpec, path: string): Promise<ProbeSite[]> {
    const { found, leftOut, similar, isMovedByGo, hiddenPython } = await this.#search(path, wantedOf(spec));
    if (isMovedByGo)
      throw new CannotProfile(
        `${spec.text}: the returns of Go's functions can't be probed: Go moves stacks, and the program would crash. Probe the entry: uprobe`,
      );
    if (hiddenPython) {
      const told = `${spec.text}: ${realPathOf(path)} is CPython, and the allocator of its objects ${HIDDEN[hiddenPython]}`;
      if (found.length === 0 && spec.path !== undefined) throw new CannotProfile(told);
      this.#warn(told);
    }
    // a program need not have an allocator of its own
    if (found.length === 0 && !(spec.kind === 'malloc' && spec.path === undefined))
      throw new CannotProfile(notFound(spec, path, similar));
    if (leftOut > 0)
      this.#warn(
        `${spec.text}: it is at ${found.length + leftOut} places of ${path}, of which ${found.length} are probed`,
      );
    return found.flatMap((one) => {
      const { offset, semaphore, name } = one;
      const fields = fieldsOf(spec, one.arguments);
      return programsOf(spec, name).map((program) => ({
        ...{ path, offset, semaphore, ...program },
        ...(fields && { fields }),
      }));
    });
  }

  async #search(path: string, wanted: ProbeRequest['wanted']): Promise<ProbeAnswer> {
    try {
      return await withOpenFile(path, (fd) => this.#client.request({ fd, path: realPathOf(path), wanted }));
    } catch (error) {
      throw new CannotProfile(`${path} can't be searched for a place to probe: ${(error as Error).message}`);
    }
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.#client.stop();
  }
}

const AT_PLACE = [{ program: 'on_probe', isAtReturn: false }];
const AT_CALL_AND_RETURN = [
  { program: 'on_entry', isAtReturn: false },
  { program: 'on_return', isAtReturn: true },
];

const wantedOf = (spec: ProbeSpec): ProbeRequest['wanted'] => {
  if (spec.kind === 'malloc') return 'allocators';
  return spec.kind === 'usdt'
    ? { provider: spec.provider, name: spec.name }
    : {
        symbol: spec.symbol,
        offset: spec.kind === 'uprobe' ? spec.offset : 0,
        isAtReturn: spec.kind === 'uretprobe',
      };
};

/** What runs at a place that was found, by the programs of the event's BPF object. */
function programsOf(spec: ProbeSpec, name: string | undefined): readonly ProbeProgram[] {
  if (spec.kind === 'malloc') return probesOfAllocator(name ?? '');
  return spec.kind === 'uretprobe' ? AT_CALL_AND_RETURN : AT_PLACE;
}

/** Each file once. */
function filesOf(spec: ProbeSpec, programs: readonly string[]): string[] {
  if (spec.path !== undefined) return [findProbedFile(spec.path)];
  const byIdentity = new Map([...allocatorLibraries(), ...programs].map((path) => [identityAt(path), path]));
  byIdentity.delete('');
  return [...byIdentity.values()];
}

/** Where its debug file may lie; a mapping of a deleted file leads to no other path. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** '' where there is none, or it can't be looked at. */
function identityAt(path: string): string {
  try {
    return identityOf(statSync(path, { bigint: true }));
  } catch {
    return '';
  }
}

const MAX_TOLD = 5;

function listRefused(refused: readonly RefusedSite[]): string {
  const texts = refused.map(({ site, why }) => `${site.path}+0x${site.offset.toString(16)} (${why})`);
  // a function may have one where it begins and one for its return
  const places = [...new Set(texts)];
  const told = places.slice(0, MAX_TOLD).join(', ');
  return places.length > MAX_TOLD ? `${told} and ${places.length - MAX_TOLD} more places` : told;
}

const INLINED = 'was compiled into its callers (LTO with a profile), where no probe sees it';
const BY_MALLOC =
  'those of up to 512 bytes are missing, but for programs that were started with PYTHONMALLOC=malloc, which leads all of them through malloc()';
const HIDDEN: Readonly<Record<HiddenPython, string>> = {
  inlined: `${INLINED}: ${BY_MALLOC}`,
  // it has no choice of allocators
  'inlined, free-threaded': `${INLINED}: they are missing`,
  unknown: `was not found in it: ${BY_MALLOC}`,
};

function notFound(spec: ProbeSpec, path: string, similar: readonly string[]): string {
  if (spec.kind === 'malloc')
    return `${path} has no function of an allocator, such as malloc or runtime.mallocgc`;
  const name = excerpt(spec.kind === 'usdt' ? `${spec.provider}:${spec.name}` : spec.symbol);
  const what = `${spec.kind === 'usdt' ? 'probe' : 'function'} ${name}`;
  if (similar.length > 0) return `${path} has no ${what}; it has ${similar.join(', ')}`;
  return spec.kind === 'usdt'
    ? `${path} has no ${what}, nor any other: it was built without them`
    : `${path} has no ${what}: is it stripped, and its debug package not installed?`;
}
