/** Where a probe goes. */
export interface ProbeSite {
  /** Of the file, through which any process may have it mapped. */
  path: string;
  /** In the file. */
  offset: number;
  /** Offset of the u16 that says whether somebody listens; 0: there is none. */
  semaphore: number;
}
