/** How the objects of build/ are opened. */
import type { NativeBpfObject } from '../base/native.ts';
import type { EventSettings } from './event-config.ts';
import type { SamplerPart } from './sampler-part.ts';

/** Settings that one object is opened with. */
interface Opening {
  programs: readonly string[];
  /** enum ef_context: where they run. */
  context: number;
  runtimes?: readonly SamplerPart[];
  /** Of the event that its program is attached to. */
  event?: EventSettings;
  /** Entries of maps, where they differ from the object's source. */
  maxEntries?: Record<string, number>;
  /** Maps that these objects have are used in place of new ones. */
  share?: readonly NativeBpfObject[];
}

/** Opens an object of build/, without loading it. */
export type OpenObject = (file: string, opening: Opening) => NativeBpfObject;
