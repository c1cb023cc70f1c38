const INITIAL_ROWS = 1024;

/** Samples as columns, 16 bytes an event; a weight column exists only once an event stands for several. */
export class SampleColumns {
  length = 0;
  /** Sum of the weights. */
  events = 0;
  /** Milliseconds since the segment's start, which spans one minute. */
  times = new Uint16Array(INITIAL_ROWS);
  nodes = new Uint32Array(INITIAL_ROWS);
  processes = new Uint32Array(INITIAL_ROWS);
  tids = new Uint32Array(INITIAL_ROWS);
  /** Logical CPU, -1 if unknown. */
  cpus = new Int16Array(INITIAL_ROWS);
  weights: Float64Array<ArrayBuffer> | undefined;

  get bytes(): number {
    return this.times.length * 16 + (this.weights?.byteLength ?? 0);
  }

  push(time: number, node: number, process: number, tid: number, cpu: number, weight: number): void {
    const row = this.length++;
    if (row === this.times.length) this.#resize(row * 2);
    this.times[row] = time;
    this.nodes[row] = node;
    this.processes[row] = process;
    this.tids[row] = tid;
    this.cpus[row] = cpu;
    if (weight !== 1 && this.weights === undefined)
      this.weights = new Float64Array(this.times.length).fill(1);
    if (this.weights !== undefined) this.weights[row] = weight;
    this.events += weight;
  }

  /** Gives back the room kept for growth: for a minute that has passed. */
  trim(): void {
    if (this.length < this.times.length) this.#resize(Math.max(this.length, 1));
  }

  #resize(rows: number): void {
    this.times = resized(this.times, new Uint16Array(rows));
    this.nodes = resized(this.nodes, new Uint32Array(rows));
    this.processes = resized(this.processes, new Uint32Array(rows));
    this.tids = resized(this.tids, new Uint32Array(rows));
    this.cpus = resized(this.cpus, new Int16Array(rows));
    if (this.weights !== undefined) this.weights = resized(this.weights, new Float64Array(rows).fill(1));
  }
}

function resized<T extends Uint16Array | Uint32Array | Int16Array | Float64Array>(from: T, to: T): T {
  to.set(from.length > to.length ? from.subarray(0, to.length) : from);
  return to;
}
