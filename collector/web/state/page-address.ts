/**
 * Where what lies below the page is: absolute, and without the user and password that the page's own address may have, with which
 * browsers fetch nothing.
 */
export const addressOf = (path: string): string => new URL(path, location.origin + location.pathname).href;
