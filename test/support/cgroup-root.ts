/** A folder in which groups can be made: of cgroup v1's memory controller, or of the unified hierarchy. */
import { accessSync, constants } from 'node:fs';

export const cgroupRoot: string | undefined = ['/sys/fs/cgroup/memory', '/sys/fs/cgroup'].find(canMakeGroups);

/** Inside a container the hierarchy is often mounted read-only. */
function canMakeGroups(path: string): boolean {
  try {
    accessSync(`${path}/cgroup.procs`, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
