/** Which of the files that hold a runtime a process has mapped: only code without a file was sampled in it so far. */
import { basename } from 'node:path';
import type { Pid } from '../../common/base/brand.ts';
import { type Executable, isRead } from '../executables/files/executable.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import { codeMappings } from '../processes/mapped-files.ts';
import type { RuntimeFiles } from './process-runtimes.ts';
import { mayHoldRuntime } from './registry.ts';

/**
 * `executables`: all that were reported. By inode and name: what /proc says of the device is on overlayfs another than
 * the kernel's own. A wrong one has no runtime where it is looked for. `unmet`: links to files that are called after a runtime
 * and that no sample has come to: a program may spend all its time in code that a JIT has made of it.
 */
export function findRuntimeFiles(
  pid: Pid,
  executables: readonly Executable[],
  reader: ForeignReader,
): RuntimeFiles & { unmet: string[] } {
  const mappings = codeMappings(pid, reader);
  const places: RuntimeFiles['places'] = [];
  const inodes = new Set(mappings.map(({ inode }) => inode));
  const mapped = executables.filter(({ identity }) => inodes.has(identity.inode));
  const unmet: string[] = [];
  let isComplete = mappings.length > 0;
  for (const { start, offset, inode, path, link } of mappings) {
    const files = mapped.filter(
      ({ identity, name }) => identity.inode === inode && path.endsWith(`/${name}`),
    );
    const holder = files.find(({ runtime }) => runtime);
    if (holder) places.push({ runtime: holder.runtime!.runtime, key: holder.key, base: start - offset });
    // it is called after a runtime, and was not read yet
    else if (mayHoldRuntime(basename(path)) && !files.some(isRead)) {
      isComplete = false;
      if (files.length === 0) unmet.push(link);
    }
  }
  return { places, isComplete, unmet };
}
