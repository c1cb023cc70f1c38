import type { FrameType } from '../profile/model/profile.ts';

/** What a box of the flame graph stands for: a frame of some type, or one of the graph's own levels. */
export type FrameKind = Exclude<FrameType, ''> | 'unknown' | 'process' | 'root' | 'other';
