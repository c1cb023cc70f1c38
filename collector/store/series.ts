/** One thread of one execution of a process under one sampling period: what its samples share. */
export interface Series {
  /** Name that the graph groups processes by. */
  process: string;
  pid: number;
  tid: number;
  thread: string;
  path: string;
  command: string;
  containerId: string;
  cgroup: string;
  service: string;
  host: string;
  /** The sender's other attributes, as `attributesText` writes it; '' for nothing. */
  attributes: string;
  startUnixNano: bigint;
  /** CPU time that one event stands for; 0 for samples of other types. */
  periodNanos: number;
}

/** A series without what tells one execution of a thread from the next. */
export type SeriesGroup = Omit<Series, 'pid' | 'tid' | 'startUnixNano'>;
