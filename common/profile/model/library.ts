/** What code belongs to where libraries are told apart: the binary, or the package of a runtime's code. */

import { FRAME_TYPES, isFrameType } from './frame-types.ts';

interface LibraryFrame {
  name: string;
  file: string;
  mapping: string;
  /** Of the frame, or of a box that is none. */
  kind: string;
}

/** What threads do, in place of code: the agent's frames of its type thread_time. */
const THREAD_STATE = /^\[(?:running|runnable|blocked:[a-z-]+)\]$/;

/** Is it a state of threads that {@link libraryName} has named? */
export const isStateName = (library: string): boolean =>
  library.startsWith('[') && THREAD_STATE.test(library);

/** '' for boxes that stand for something else than code; of states of threads their name. */
export function libraryName({ name, file, mapping, kind }: LibraryFrame): string {
  if (mapping === '' && THREAD_STATE.test(name)) return name;
  const type = kind === 'unknown' ? 'native' : kind;
  if (!isFrameType(type) || type === 'abort-marker') return '';
  const { isInFile, packageOf } = FRAME_TYPES[type];
  const binary = isInFile ? fileName(mapping) : '';
  const library = binary || packageOf?.(name) || packageOfFile(file) || directoryName(file) || fileName(file);
  return library || (type === 'native' ? 'unknown' : type);
}

const fileName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const directoryName = (path: string): string => fileName(path.slice(0, Math.max(0, path.lastIndexOf('/'))));

const PACKAGES: readonly RegExp[] = [
  /^(node):/,
  /^(<frozen)/,
  /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/,
  /.*\/(?:site|dist)-packages\/([^/]+?)(?:\.py)?(?:\/|$)/,
  /.*\/lib(?:64)?\/(python[\d.]+t?)\//,
  /.*\/gems\/([^/]+)\//,
  /.*\/lib\/(ruby)\//,
  /.*\/vendor\/([^/]+\/[^/]+)\//,
  /.*\/deps\/([^/]+)\//,
];

function packageOfFile(file: string): string | undefined {
  for (const pattern of PACKAGES) {
    const found = pattern.exec(file)?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}
