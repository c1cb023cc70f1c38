/** How large a table may get. */

/** Rows of some 100 MiB of code have 10 MiB. */
export const MAX_IMAGE_BYTES = 64 << 20;

/** A table that is too large to be kept. */
export class TableTooLarge extends Error {
  override readonly name = 'TableTooLarge';
}
