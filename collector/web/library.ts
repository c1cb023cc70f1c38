/** What a box is coloured by where libraries are told apart: the binary, or the package of a runtime's code. */
import type { FrameKind } from '../store/store.ts';

interface LibraryFrame {
  name: string;
  file: string;
  mapping: string;
  kind: FrameKind;
}

/** '' for boxes that stand for something else than code. */
export function libraryName({ name, file, mapping, kind }: LibraryFrame): string {
  switch (kind) {
    case 'root':
    case 'process':
    case 'other':
    case 'abort-marker':
      return '';
    case 'kernel':
      return fileName(mapping) || 'kernel';
    case 'native':
    case 'unknown':
      return fileName(mapping) || directoryName(file) || 'unknown';
    case 'go':
      return goPackage(name);
    case 'jvm':
      return javaPackage(name);
    case 'dotnet':
      return fileName(mapping) || name.split('.').slice(0, 2).join('.');
    default:
      return packageOf(file) ?? (directoryName(file) || fileName(file) || kind);
  }
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

function packageOf(file: string): string | undefined {
  for (const pattern of PACKAGES) {
    const found = pattern.exec(file)?.[1];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The import path: what is before the first dot behind the last slash. */
function goPackage(name: string): string {
  const slash = name.lastIndexOf('/', name.search(/[([]|$/));
  const dot = name.indexOf('.', slash + 1);
  return dot < 0 ? name : name.slice(0, dot);
}

/** Two parts tell whose it is: `java.util`, `com.example`. */
function javaPackage(name: string): string {
  const parts = name.split(/[(<$]/)[0]!.split(/[./]/);
  // the last two are class and method
  return parts.slice(0, Math.min(2, Math.max(1, parts.length - 2))).join('.');
}
