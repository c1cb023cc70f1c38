/** Largest file that is taken, as it is on disk. */
export const MAX_IMPORT_BYTES = 64 * 2 ** 20;
/** What may come of it. */
export const MAX_IMPORTED_BYTES = 64 * 2 ** 20;
