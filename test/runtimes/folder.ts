/** test/runtimes, from the sources as from the compiled tree: what is beside these files is not compiled. */
import { join } from 'node:path';
import { packageRoot } from '../../agent/base/package-root.ts';

export const FOLDER = join(packageRoot(), 'test/runtimes');
