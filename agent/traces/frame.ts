import type { FrameType, Line, Mapping } from '../../common/profile/model/profile.ts';
import type { NamedRange } from '../../common/symbols/source.ts';

/** An inlined or real function at a location, innermost first. */
export interface FrameLine extends Omit<Line, 'func'> {
  function: string;
  systemName: string;
  file: string;
  /** First line of the function; left out where it is not known. */
  startLine?: number;
  startColumn?: number;
}

export interface Frame {
  mapping: Mapping;
  /** ELF virtual address; 0 where there is none. */
  address: number;
  frameType: FrameType;
  lines: FrameLine[];
  /** Without lines: see {@link NamedRange}; 0 where that is not known. */
  functionStart?: number;
  /** Location in the generated code, if file and line are those of the source that it was made from. */
  generated?: string;
  /** Made with the frame: what is added later costs V8 an array. */
  number?: number | undefined;
  /** True if the frame changed since the profile tables were last asked for it. */
  isChanged: boolean;
}
