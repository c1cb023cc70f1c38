import type { UserField } from './event-field.ts';

/** What runs at a place. */
export interface ProbeProgram {
  /** Of the event's BPF object. */
  program: string;
  /** There is a function, and it runs when that returns. */
  isAtReturn: boolean;
}

/** Where a probe goes. */
export interface ProbeSite extends ProbeProgram {
  /** Of the file, through which any process may have it mapped. */
  path: string;
  /** In the file. */
  offset: number;
  /** Offset of the u16 that says whether somebody listens; 0: there is none. */
  semaphore: number;
  /** Where the event's value is there, and what it is chosen by. */
  fields?: SiteFields;
}

/** The kernel does not probe it. */
export interface RefusedSite {
  site: ProbeSite;
  /** A clause. */
  why: string;
}

export interface SiteFields {
  value?: UserField;
  filter?: UserField;
}
