import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

export interface PageFile {
  body: Buffer;
  type: string;
  /** Names with a hash of the content never change what they mean. */
  immutable: boolean;
}

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/**
 * Reads the built page into memory, by URL path; `/` is index.html.
 *
 * @throws Error that says how to build it when it is missing
 */
export function readPageFiles(directory: string): Map<string, PageFile> {
  const files = new Map<string, PageFile>();
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    throw new Error(`the page is not built (${directory}): run npm run build`, { cause: error });
  }
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const immutable = /-[0-9A-Z]{8}\.\w+$/.test(name);
    files.set(`/${name}`, { body: readFileSync(join(directory, name)), type, immutable });
  }
  const index = files.get('/index.html');
  if (index === undefined) throw new Error(`no index.html in ${directory}: run npm run build`);
  files.set('/', index);
  return files;
}
