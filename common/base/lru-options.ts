/** For look-ups of an LRU cache that run for each sample: without it lru-cache makes an object for each of them. */
export const NO_OPTIONS = {};
