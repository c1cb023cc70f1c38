/** Which of the files that hold a runtime a process has mapped: only code without a file was sampled in it so far. */
import type { Pid } from '../../common/base/brand.ts';
import type { RuntimePlace } from '../interpreters/process-runtimes.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import { codeMappings } from '../processes/mapped-files.ts';
import type { Executable } from './executable.ts';

/**
 * By inode and name: what /proc tells of the device is on overlayfs another than the kernel's own. A wrong one has no
 * runtime where it is looked for.
 */
export function findRuntimeFile(
  pid: Pid,
  executables: readonly Executable[],
  reader: ForeignReader,
): RuntimePlace | undefined {
  if (executables.length === 0) return undefined;
  for (const { start, offset, inode, path } of codeMappings(pid, reader)) {
    const found = executables.find(
      ({ identity, name }) => identity.inode === inode && path.endsWith(`/${name}`),
    );
    if (found) return { key: found.key, base: start - offset };
  }
  return undefined;
}
