/** A profile of waits without those of idle pools, or with one stack for each: what `record --idle` writes. */
import type { Func, Location, Profile, Sample } from '../model/profile.ts';
import { type IdleMode, idleFrameName, idlePool } from './idle-pools.ts';
import type { CodeFrame } from './my-code.ts';

/** Tables of the result are its own, where they differ. */
export function foldIdle(profile: Profile, mode: IdleMode): Profile {
  const pools = profile.stacks.map((_, stack) => idlePool(programFrames(profile, stack)));
  if (mode === 'hide')
    return { ...profile, samples: profile.samples.filter(({ stack }) => pools[stack] === undefined) };
  const [functions, locations, stacks] = [
    [...profile.functions],
    [...profile.locations],
    [...profile.stacks],
  ];
  const known = new Map<string, number>();
  const stackOf = (pool: string): number => {
    const stack = known.get(pool) ?? addStack({ functions, locations, stacks }, idleFrameName(pool));
    known.set(pool, stack);
    return stack;
  };
  const samples = profile.samples.map((sample): Sample => {
    const pool = pools[sample.stack];
    return pool === undefined ? sample : { ...sample, stack: stackOf(pool) };
  });
  return { ...profile, functions, locations, stacks, samples };
}

function addStack(
  { functions, locations, stacks }: { functions: Func[]; locations: Location[]; stacks: Uint32Array[] },
  name: string,
): number {
  const func = functions.push({ name, systemName: '', filename: '', startLine: 0 }) - 1;
  const lines = [{ func, line: 0, column: 0 }];
  const location = locations.push({ mapping: 0, address: 0n, frameType: 'native', lines }) - 1;
  return stacks.push(Uint32Array.of(location)) - 1;
}

/** Without those of the kernel, the outermost first. */
function programFrames({ stacks, locations, functions, mappings }: Profile, stack: number): CodeFrame[] {
  const frames: CodeFrame[] = [];
  for (const index of stacks[stack]!) {
    const { frameType, mapping, lines } = locations[index]!;
    if (frameType === 'kernel') continue;
    const place = { mapping: mappings[mapping]!.filename, kind: frameType };
    for (const { func } of lines.length === 0 ? [{ func: 0 }] : lines)
      frames.push({ ...place, name: functions[func]!.name, file: functions[func]!.filename });
  }
  return frames.reverse();
}
