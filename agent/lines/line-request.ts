/** What a worker is asked of a file that shows lines, and what it answers. */

export interface LineRequest<Place> {
  pid: number;
  /** Another one for each program that runs under the PID. */
  execution: number;
  /** Absolute path of what runs, as the process sees it. */
  file: string;
  places: Place[];
}

/** Why a file says no lines. */
export type NoLines =
  /** There is none, or nothing of what runs under that path. */
  | 'none'
  /** The process has ended. */
  | 'gone'
  /** The file is not the one that the process runs. */
  | 'changed'
  /**
   * No regular file, outside of the process's root, or not readable for the process; one that somebody else than root and the
   * owner of what runs can change.
   */
  | 'refused'
  | 'too-large'
  | 'malformed';

export type LineAnswer<Found> =
  /** By place, undefined where nothing is said of it. */
  { kind: 'places'; places: (Found | undefined)[] } | { kind: NoLines };

/** Ends reading with an answer. */
export class NoLinesError extends Error {
  readonly kind: NoLines;

  constructor(kind: NoLines) {
    super(kind);
    this.kind = kind;
  }
}
