/**
 * Descriptors in requests to a worker, which is another process: properties named `fd` and `root`. They are sent beside
 * the request, in which their places in the list stand meanwhile.
 */
const NAMES: ReadonlySet<string> = new Set(['fd', 'root']);

/** The request with each descriptor put into the list, and replaced by its place there. */
export function takeDescriptors(request: unknown, fds: number[]): unknown {
  return replaceDescriptors(request, (fd) => fds.push(fd) - 1);
}

/** The request with the descriptors that came with it. */
export const putDescriptors = (request: unknown, fds: readonly number[]): unknown =>
  replaceDescriptors(request, (place) => fds[place]!);

function replaceDescriptors(value: unknown, replace: (fd: number) => number): unknown {
  if (Array.isArray(value)) return value.map((item) => replaceDescriptors(item, replace));
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value))
    copy[name] =
      typeof part === 'number' && NAMES.has(name) ? replace(part) : replaceDescriptors(part, replace);
  return copy;
}
