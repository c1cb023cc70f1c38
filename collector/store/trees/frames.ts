import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import type { FrameType, Func, Location, Mapping, Process } from '../../../common/profile/model/profile.ts';
import type { Frame } from '../store.ts';
import { MAX_LINES } from './frame-table.ts';

/** The frame that stands for folded boxes. */
export const OTHER: Frame = { name: '(other)', file: '', mapping: '', kind: 'other' };

/** An order that does not depend on which came first. */
export const compareFrames = (a: Frame, b: Frame): number =>
  compareTexts(a.name, b.name) || compareTexts(a.mapping, b.mapping) || compareTexts(a.file, b.file);

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Name of a process in the graph's second level: all processes of a name share a box. */
export function processName(process: Process): string {
  // A sender that knows no name gives unknown_service, or unknown_service:NAME.
  const service = process.serviceName.replace(/^unknown_service(?::|$)/, '');
  return process.executableName || process.commandName || service || '(unknown process)';
}

/** A location's frames, outermost first: an inlined call is a frame of its own. */
export function locationFrames(
  file: Mapping | undefined,
  location: Location,
  functionOf: (index: number) => Func | undefined,
): Frame[] {
  const mapping = file?.filename ?? '';
  const kind = frameKind(location.frameType);
  const line = lineOfPlace(Number(location.address), location.functionStart);
  const nameless = (): Frame => ({
    ...{ name: unnamed(location, mapping), file: '', mapping, kind },
    ...(line > 0 && { line }),
  });
  if (location.lines.length === 0) {
    const binary = binaryOf(file, location);
    return [binary === '' ? nameless() : { ...nameless(), binary }];
  }
  return location.lines
    .map((line): Frame => {
      const func = functionOf(line.func);
      const name = func?.name || func?.systemName || unnamed(location, mapping);
      const file = func?.filename ?? '';
      return { name, file, mapping, kind, ...(file !== '' && line.line > 0 && { line: line.line }) };
    })
    .reverse();
}

/**
 * What names of a later time are found by: file ID, `/`, GNU build ID, each of which may be ''. '' for what no file
 * names: code of runtimes and of the kernel.
 */
export function binaryOf(
  mapping: Mapping | undefined,
  { address, frameType }: Pick<Location, 'address' | 'frameType'>,
): string {
  const isOfFile = (frameType === 'native' || frameType === 'go') && address > 0n;
  if (!isOfFile || mapping === undefined || (mapping.fileId === '' && mapping.gnuBuildId === '')) return '';
  return `${mapping.fileId}/${mapping.gnuBuildId}`;
}

/** The address of a frame that has a binary. */
export const addressOf = ({ name, line = 1 }: Frame): number =>
  Number(name.slice(name.lastIndexOf('+0x') + 1)) + line - 1;

/** Line of a frame without a name; 0 where no function is known that its address lies in. */
export function lineOfPlace(address: number, functionStart = Number.POSITIVE_INFINITY): number {
  const line = address - functionStart + 1;
  return line > 0 && line < MAX_LINES ? line : 0;
}

export function frameKind(type: FrameType): FrameKind {
  return type === '' ? 'unknown' : type;
}

/** `libc.so.6+0x1234`: what is known of a location without a name; the function's begin where that is known. */
function unnamed(location: Location, mapping: string): string {
  if (location.frameType === 'abort-marker') return '[stack incomplete]';
  const file = mapping.slice(mapping.lastIndexOf('/') + 1);
  if (location.address === 0n) return file === '' ? '[unknown]' : `[${file}]`;
  const { address, functionStart } = location;
  const place = lineOfPlace(Number(address), functionStart) > 0 ? functionStart! : address;
  return `${file === '' ? '[unknown]' : file}+0x${place.toString(16)}`;
}
