/** `POST /api/v1/import` */
export interface ImportResult {
  fileName: string;
  /** Events that were stored. */
  samples: number;
  rejected: { reason: string; count: number }[];
  /** Times of what was in the file, milliseconds since the Unix epoch; `toMs` not included. */
  fromMs: number;
  toMs: number;
  /** The same file was imported before, and is not stored again. */
  repeated: boolean;
}
