import type { FrameType, Location, Process, Profile } from '../../common/profile/profile.ts';
import type { Frame, FrameKind } from './store.ts';

/** Name of a process in the graph's second level: all processes of a name share a box. */
export function processName(process: Process): string {
  return process.executableName || process.commandName || process.serviceName || '(unknown process)';
}

/** A location's frames, outermost first: an inlined call is a frame of its own. */
export function locationFrames(profile: Profile, location: Location): Frame[] {
  const mapping = profile.mappings[location.mapping]?.filename ?? '';
  const kind = frameKind(location.frameType);
  if (location.lines.length === 0) return [{ name: unnamed(location, mapping), file: '', mapping, kind }];
  return location.lines
    .map((line): Frame => {
      const func = profile.functions[line.func];
      const name = func?.name || func?.systemName || unnamed(location, mapping);
      return { name, file: func?.filename ?? '', mapping, kind };
    })
    .reverse();
}

function frameKind(type: FrameType): FrameKind {
  return type === '' ? 'unknown' : type;
}

/** `libc.so.6+0x1234`: what is known of a location without a function. */
function unnamed(location: Location, mapping: string): string {
  if (location.frameType === 'abort-marker') return '[stack incomplete]';
  const file = mapping.slice(mapping.lastIndexOf('/') + 1);
  if (location.address === 0n) return file === '' ? '[unknown]' : `[${file}]`;
  return `${file === '' ? '[unknown]' : file}+0x${location.address.toString(16)}`;
}
