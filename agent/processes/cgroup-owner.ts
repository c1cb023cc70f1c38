/**
 * What a cgroup's path says about who owns a process: its container and its systemd unit. Paths of the engines
 * and managers that are in use:
 *
 *   /system.slice/docker-<64 hex>.scope                                  Docker, systemd driver
 *   /docker/<64 hex>                                                     Docker, cgroupfs driver
 *   /kubepods.slice/…-pod<uid>.slice/cri-containerd-<64 hex>.scope       containerd, CRI-O (crio-…)
 *   /kubepods/burstable/pod<uid>/<64 hex>                                kubelet, cgroupfs driver
 *   /system.slice/containerd.service/kubepods-…:cri-containerd:<64 hex>  containerd without a systemd driver
 *   /machine.slice/libpod-<64 hex>.scope/container                       Podman
 *   /ecs/<task>/<32 hex>-<digits>                                        Amazon ECS
 *   /lxc.payload.<name>/…, /lxc/<name>/…                                 LXC, Incus
 *   /user.slice/user-1000.slice/user@1000.service/app.slice/x.service    a user's unit
 */
export interface CgroupOwner {
  /** '' if the path names no container. */
  containerId: string;
  /** Name of the innermost systemd service without `.service` and instance, '' if there is none. */
  unit: string;
}

const MAX_PATH = 4096;
const CONTAINER_ID = /(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{32}-\d{1,20})(?![0-9a-f-])/;
/** The engine's own helper, beside the container and named after it. */
const ENGINE_HELPER = /(?:^|-)conmon-/;
const LXC_PAYLOAD = /^lxc\.payload\.(.+)$/;

/** The innermost container wins: in a cluster inside a container, the one that the process runs in. */
export function readCgroupOwner(cgroupPath: string): CgroupOwner {
  const components = cgroupPath.slice(0, MAX_PATH).split('/');
  for (let i = components.length - 1; i > 0; i--) {
    const containerId = containerIdOf(components[i]!, components[i - 1]!);
    // Units outside the container run its engine, not what is in it.
    if (containerId !== '') return { containerId, unit: innermostUnit(components.slice(i + 1)) };
  }
  return { containerId: '', unit: innermostUnit(components) };
}

/** '' where that component, below that parent, is none of a container. */
export function containerIdOf(component: string, parent: string): string {
  if (ENGINE_HELPER.test(component)) return '';
  const id = CONTAINER_ID.exec(component)?.[0];
  if (id !== undefined) return id;
  const payload = LXC_PAYLOAD.exec(component)?.[1];
  if (payload !== undefined) return payload;
  return parent === 'lxc' ? component : '';
}

function innermostUnit(components: string[]): string {
  for (const component of components.reverse()) {
    // user@1000.service holds a whole session: what runs below it has units and scopes of its own.
    if (!component.endsWith('.service') || component.startsWith('user@')) continue;
    const name = component.slice(0, -'.service'.length).replace(/@.*$/, '');
    if (name !== '') return unescapeUnit(name);
  }
  return '';
}

/** systemd.unit(5), "String escaping for inclusion in unit names": \xNN. */
function unescapeUnit(name: string): string {
  return name.replace(/\\x([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/**
 * The path to take from /proc/PID/cgroup: that of the unified hierarchy, or, where that says nothing because the
 * host still uses cgroup v1, the longest of the others.
 */
export function parseProcCgroup(text: string): string {
  let unified = '';
  let longest = '';
  for (const line of text.split('\n')) {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    if (!match) continue;
    const path = match[3]!.slice(0, MAX_PATH);
    if (match[1] === '0') unified = path;
    else if (path.length > longest.length) longest = path;
  }
  return unified.length > 1 ? unified : longest || unified;
}
