/** Names and messages come from strangers: no control character of theirs reaches the terminal. */
export const printable = (text: string): string => text.replace(/\p{C}/gu, '?');
