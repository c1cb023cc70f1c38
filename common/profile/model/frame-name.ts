/** How a location is shown where there is room for text only. */
import type { Profile } from './profile.ts';

export const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/**
 * Innermost inlined function first; `file+0xaddress` where the location has no name, of the function that it lies in where that
 * is known. Never empty.
 */
export function frameNames(profile: Profile, location: number): string[] {
  const { lines, mapping, address, functionStart } = profile.locations[location]!;
  const names = lines.map((line) => profile.functions[line.func]!.name).filter((name) => name !== '');
  if (names.length > 0) return names;
  return [placeName(profile.mappings[mapping]!.filename, functionStart ?? address)];
}

/** What is shown in place of a name. */
export const placeName = (file: string, address: bigint | number): string =>
  `${baseName(file) || '[unknown]'}+0x${address.toString(16)}`;

/** The address in what {@link placeName} made for code of the file; undefined where it is a name. */
export function placeInName(name: string, file: string): number | undefined {
  const address = Number.parseInt(/\+0x([0-9a-f]{1,14})$/.exec(name)?.[1] ?? '', 16);
  return file !== '' && Number.isSafeInteger(address) && name === placeName(file, address)
    ? address
    : undefined;
}

/** Root first, names of all frames of a stack. */
export function stackNames(
  profile: Profile,
  stack: number,
  decorate = (name: string, _location: number) => name,
): string[] {
  const names: string[] = [];
  const locations = profile.stacks[stack]!;
  for (let i = locations.length - 1; i >= 0; i--) {
    const own = frameNames(profile, locations[i]!);
    for (let j = own.length - 1; j >= 0; j--) names.push(decorate(own[j]!, locations[i]!));
  }
  return names;
}

/** What a process is called in a list: its executable, or its command where that is not known. */
export function processName(profile: Profile, process: number): string {
  const { executableName, commandName, pid } = profile.processes[process]!;
  return executableName || commandName || (pid > 0 ? `pid ${pid}` : '[unknown]');
}
