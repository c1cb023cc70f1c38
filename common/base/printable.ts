/** Names and messages come from strangers: no control character of theirs reaches the terminal. */
export const printable = (text: string): string => text.replace(/\p{C}/gu, '?');

const MAX_EXCERPT_CHARS = 100;

/** What a stranger wrote, as it stands in a message: cut where it is long. */
export const excerpt = (text: string, maxChars = MAX_EXCERPT_CHARS): string =>
  printable(text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text);
