/** Of `query` and `record`. */
export const IDLE_HELP = 'threads that wait for work: one box of each pool (fold), or nothing of them (hide)';
