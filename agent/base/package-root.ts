import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The directory of package.json, from the sources as from the compiled tree: what is built lies in build/ there. */
export function packageRoot(): string {
  let directory = import.meta.dirname;
  while (!existsSync(join(directory, 'package.json'))) {
    const parent = dirname(directory);
    if (parent === directory) throw new Error(`no package.json above ${import.meta.dirname}`);
    directory = parent;
  }
  return directory;
}
