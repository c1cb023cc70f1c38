import { processName, stackNames } from '../../common/profile/frame-name.ts';
import type { Profile } from '../../common/profile/profile.ts';

/**
 * speedscope's own file format: one sampled profile a process, weights in events.
 * https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
 */
export function writeSpeedscope(profile: Profile): Uint8Array {
  const frames: { name: string }[] = [];
  const ids = new Map<string, number>();
  const frameId = (name: string): number => {
    const known = ids.get(name) ?? frames.push({ name }) - 1;
    ids.set(name, known);
    return known;
  };
  const byProcess = new Map<string, { samples: number[][]; weights: number[]; endValue: number }>();
  for (const { process, stack, value } of profile.samples) {
    const name = processName(profile, process);
    const own = byProcess.get(name) ?? { samples: [], weights: [], endValue: 0 };
    byProcess.set(name, own);
    own.samples.push(stackNames(profile, stack).map(frameId));
    own.weights.push(value);
    own.endValue += value;
  }
  const profiles = [...byProcess]
    .sort(([, a], [, b]) => b.endValue - a.endValue)
    .map(([name, own]) => ({ type: 'sampled', name, unit: 'none', startValue: 0, ...own }));
  const file = {
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    exporter: 'everyframe',
    name: 'everyframe',
    activeProfileIndex: 0,
    shared: { frames },
    profiles,
  };
  return new TextEncoder().encode(JSON.stringify(file));
}
