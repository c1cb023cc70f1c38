/** Go as it is installed, and its other releases, which it fetches through the module proxy. */
import { spawnSync } from 'node:child_process';
import { hasTool } from '../support/fixtures.ts';

const FETCH_LIMIT_MS = 600_000;

export const isGoRelease = (tool: string): boolean => /^go\d/.test(tool);

/** For `go` or one of its releases, such as `go1.16.15`. */
export const goEnvironment = (tool: string): NodeJS.ProcessEnv => ({
  ...process.env,
  // old releases refuse flags that they do not know
  GOFLAGS: '-mod=mod',
  GOTOOLCHAIN: isGoRelease(tool) ? tool : 'local',
});

/** Whether a command is installed, or a release of Go can be had. */
export function hasToolchain(tool: string): boolean {
  if (!isGoRelease(tool)) return hasTool(tool);
  const env = goEnvironment(tool);
  return spawnSync('go', ['version'], { env, stdio: 'ignore', timeout: FETCH_LIMIT_MS }).status === 0;
}
