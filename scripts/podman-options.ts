/**
 * podman-options.js MANIFESTS CONTAINER FOLDER: what `podman run` is to be told so that it starts a container as the kubelet would, one
 * argument a line, the image's place empty. Volumes are made in FOLDER: of ConfigMaps as in the manifests, of Secrets from files FOLDER/KEY.
 */
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

interface Pod {
  hostPID?: boolean;
  securityContext?: { runAsUser: number; runAsGroup: number };
  containers: Container[];
  volumes: Volume[];
}

interface Container {
  name: string;
  command: string[];
  args: string[];
  env?: { name: string; value?: string }[];
  securityContext: {
    runAsUser?: number;
    runAsGroup?: number;
    allowPrivilegeEscalation: boolean;
    readOnlyRootFilesystem: boolean;
    capabilities: { drop: string[]; add?: string[] };
  };
  resources: { limits: { cpu: string; memory: string } };
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface Volume {
  name: string;
  configMap?: { name: string };
  secret?: { items: { key: string; path: string }[] };
  emptyDir?: { sizeLimit: string };
}

interface Manifest {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: { template?: { spec: Pod } };
}

/** What a downward field of the API says here. */
const NODE_NAME = 'node-7';

const [file = '', name = '', folder = ''] = process.argv.slice(2);
const manifests = parseAllDocuments(readFileSync(file, 'utf8')).map((one) => one.toJS() as Manifest);
const pods = manifests.flatMap(({ spec }) => spec?.template?.spec ?? []);
const pod = pods.find(({ containers }) => containers.some((one) => one.name === name));
const container = pod?.containers.find((one) => one.name === name);
if (!pod || !container) throw new Error(`${file} has no container ${name}`);
console.log([...optionsOf(pod, container), '', ...container.args].join('\n'));

function optionsOf(
  { hostPID, ...all }: Pod,
  { securityContext, resources, env = [], command }: Container,
): string[] {
  const { capabilities, runAsUser, runAsGroup } = { ...all.securityContext, ...securityContext };
  const values = env.map(
    (one) => `--env=${one.name}=${(one.value ?? NODE_NAME).replaceAll('$(NODE_NAME)', NODE_NAME)}`,
  );
  return [
    `--entrypoint=${JSON.stringify(command)}`,
    `--user=${runAsUser}:${runAsGroup}`,
    ...capabilities.drop.map((right) => `--cap-drop=${right}`),
    ...(capabilities.add ?? []).map((right) => `--cap-add=${right}`),
    ...(securityContext.allowPrivilegeEscalation ? [] : ['--security-opt=no-new-privileges']),
    ...(securityContext.readOnlyRootFilesystem ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...(hostPID ? ['--pid=host'] : []),
    `--memory=${resources.limits.memory.replace('i', '').toLowerCase()}`,
    `--cpus=${resources.limits.cpu}`,
    ...values,
    ...mountsOf(all, runAsUser!, runAsGroup!),
  ];
}

function mountsOf({ volumes }: Pick<Pod, 'volumes'>, user: number, group: number): string[] {
  return container!.volumeMounts.map(({ name: volumeName, mountPath, readOnly }) => {
    const place = join(folder, name, volumeName);
    mkdirSync(place, { recursive: true });
    const { configMap, secret, emptyDir } = volumes.find((one) => one.name === volumeName) ?? {};
    if (configMap) fillWithData(place, configMap.name);
    for (const { key, path } of secret?.items ?? []) {
      copyFileSync(join(folder, key), join(place, path));
      chmodSync(join(place, path), 0o440);
      chownSync(join(place, path), 0, group);
    }
    if (emptyDir) chmodSync(place, 0o777);
    // as fsGroup
    else if (!configMap && !secret) chownSync(place, user, group);
    return `--volume=${place}:${mountPath}${readOnly ? ':ro' : ''}`;
  });
}

function fillWithData(place: string, map: string): void {
  const found = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === map);
  for (const [key, text] of Object.entries(found?.data ?? {})) writeFileSync(join(place, key), text);
}
