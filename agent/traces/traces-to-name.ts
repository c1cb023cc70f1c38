/** Traces whose frames are named out of their processes: those that came together are named together. */
import type { Pid, TraceId } from '../../common/base/brand.ts';

export class TracesToName {
  #ids: TraceId[] = [];
  readonly #pids = new Set<Pid>();

  add(id: TraceId, pid: Pid): void {
    this.#ids.push(id);
    this.#pids.add(pid);
  }

  /** Does a trace of that process wait? */
  has(pid: Pid): boolean {
    return this.#pids.has(pid);
  }

  /** All of them, in the order in which they came; none wait then. */
  take(): TraceId[] {
    const ids = this.#ids;
    this.#ids = [];
    this.#pids.clear();
    return ids;
  }
}
