/** Flame graphs as the query API answers with them, and as a file of one profile holds them. */
import type { ValueKind } from '../profile/model/profile-type.ts';
import type { FrameKind } from './frame-kind.ts';

/** What the figures of an answer are: `samples`, `self` and `total` are sums of values of this type. */
export interface TypeAnswer {
  /** To ask for it again: `cpu`, `off_cpu/nanoseconds`. */
  name: string;
  /** What a value is, in which unit: `samples` in `count`, `alloc_space` in `bytes`. */
  type: string;
  unit: string;
  /** What passes between two samples; empty where the sender does not say. */
  periodType: string;
  periodUnit: string;
  /** Whether values of different times add up, or are the state at a time. */
  kind: ValueKind;
  /** What is shown of a stretch of time: the sum, or what each process told last. */
  shown: 'sum' | 'last';
}

/** `GET /api/v1/tree` */
export interface FlameGraphResponse extends TreeColumns {
  fromMs: number;
  toMs: number;
  /** Missing in files of earlier versions: CPU samples. */
  type?: TypeAnswer;
  /** Events in the graph, and in the time range whatever their process. */
  samples: number;
  allSamples: number;
  cpuNanos: number;
  cpus: number;
  /** Events in equal steps of the time range. */
  timeline: number[];
  /** Of the zoomed box, or of all. */
  leaves: Leaves;
}

/** A tree as columns; the kinds of answers of /api/v1 that hold one are in schemas.ts. */
export interface TreeColumns {
  strings: string[];
  kinds: FrameKind[];
  /** Columns: indices into `strings`, and into `kinds`. */
  frames: { name: number[]; file: number[]; mapping: number[]; kind: number[] };
  /** Columns, breadth first (see FlameTree): indices of the parent and of the frame, events of its own. */
  nodes: { parent: number[]; frame: number[]; self: number[] };
  /** What is in "(other)": boxes, without those below them, and the samples of both. */
  folded: { nodes: number; samples: number };
}

/** Samples of a picture, by what they ended in. */
export interface Leaves {
  /** All samples of the picture, or of the box that is looked at. */
  samples: number;
  /** By kind of the innermost frame, the most first. They add up to the samples. */
  kinds: { kind: FrameKind; samples: number }[];
  /** By library of the innermost frame, the most first: so many at most; '' for what is of none. */
  libraries: { library: string; samples: number }[];
  /** Samples whose stack was cut. They are in the kinds as well, under what they ended in. */
  incomplete: number;
}
