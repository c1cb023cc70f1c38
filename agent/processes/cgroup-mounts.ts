/** Where hierarchies of cgroups are mounted: proc_pid_mountinfo(5). */
export interface CgroupMount {
  version: 'cgroup' | 'cgroup2';
  /** Of the hierarchy, which may be mounted at several places: `0:26`. */
  device: string;
  /** The group that is seen at `path`: not the first one in a container. */
  root: string;
  path: string;
  /** Of version 1: its controllers among others. */
  options: readonly string[];
}

export const parseCgroupMounts = (mountinfo: string): CgroupMount[] =>
  mountinfo.split('\n').flatMap((line) => parseMount(line) ?? []);

function parseMount(line: string): CgroupMount | undefined {
  const [before = '', after = ''] = line.split(' - ');
  const [, , device = '', root = '/', path = ''] = before.split(' ').map(unescapeOctal);
  const [version, , options = ''] = after.split(' ');
  if (version !== 'cgroup' && version !== 'cgroup2') return undefined;
  return { version, device, root, path, options: options.split(',') };
}

const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
