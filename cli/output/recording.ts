/** What `record` writes in the end. */
import { foldIdle } from '../../common/profile/filters/fold-idle.ts';
import type { IdleMode } from '../../common/profile/filters/idle-pools.ts';
import { mergeProfiles } from '../../common/profile/model/merge.ts';
import { countEvents, type Profile, type ProfileSet, setOf } from '../../common/profile/model/profile.ts';
import { findType, type ProfileType, typeKey, typeName } from '../../common/profile/model/profile-type.ts';
import { LOCK, OFF_CPU } from '../../common/profile/model/thread-types.ts';

/** A recording is merged now and then, so that its memory grows with what is distinct in it. */
const MERGE_EVERY = 16;
/** Types of profiles that idle threads are in. */
const WAITS: readonly string[] = [OFF_CPU, LOCK];

/** Collects what the controller makes; merges as it goes. */
export class Recording {
  readonly #types: readonly ProfileType[];
  #profiles: Profile[] = [];
  samples = 0;

  /** All types that are sampled. */
  constructor(types: readonly ProfileType[]) {
    this.#types = types;
  }

  push(profile: Profile): void {
    this.samples += countEvents(profile);
    this.#profiles.push(profile);
    if (this.#profiles.length >= MERGE_EVERY) this.#profiles = mergeProfiles(this.#profiles);
  }

  clear(): void {
    this.#profiles = [];
    this.samples = 0;
  }

  /** Of all types, or of one that may have no samples. */
  finish({ type, idle }: { type?: string | undefined; idle?: IdleMode | undefined }): ProfileSet {
    const wanted = type === undefined ? undefined : this.#types[findType(this.#types, type)]!;
    const isWanted = (profile: Profile): boolean => !wanted || typeKey(profile.type) === typeKey(wanted);
    const isFolded = ({ type }: Profile): boolean => idle !== undefined && WAITS.includes(typeName(type));
    const profiles = this.#profiles
      .filter(isWanted)
      .map((profile) => (isFolded(profile) ? foldIdle(profile, idle!) : profile));
    return setOf(mergeProfiles(profiles));
  }
}
