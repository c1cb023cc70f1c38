import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-root.ts';

let version: string | undefined;

/** The version in package.json. */
export function productVersion(): string {
  version ??= (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string })
    .version;
  return version;
}

/** In a process that can't read it. */
export function setProductVersion(known: string): void {
  version = known;
}
