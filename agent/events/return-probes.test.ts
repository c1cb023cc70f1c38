import { expect, it } from 'vitest';
import { returnProbeDanger } from './return-probes.ts';

it.each([
  ['6.11.0', 'x64', true],
  ['6.12.9-amd64', 'x64', true],
  ['6.13.0', 'x64', true],
  ['6.10.11', 'x64', false],
  ['6.14.0', 'x64', false],
  ['5.12.0', 'x64', false],
  ['7.12.0', 'x64', false],
  ['6.12.9', 'arm64', false],
  ['unknown', 'x64', false],
])('a probe of a return on Linux %s, %s, may end programs: %s', (release, architecture, isDangerous) => {
  const danger = returnProbeDanger(release, architecture);
  expect(danger !== undefined).toBe(isDangerous);
  if (isDangerous) expect(danger).toContain(`Linux ${release}`);
});
