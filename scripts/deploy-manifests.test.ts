/** What the committed manifests (golden files of the Helm chart) say of the product is what the product has. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { packageRoot } from '../agent/base/package-root.ts';
import { missingFrom } from '../agent/host/capabilities.ts';
import { AGENT_SETTINGS, parseAgentOptions } from '../agent/settings/options.ts';
import { parseConfig } from '../cli/config/config-file.ts';
import { startHealthServer } from '../cli/service/health-server.ts';
import { agentBudget } from '../cli/start/memory-limit.ts';
import { parseListenAddress } from '../collector/net/listen.ts';
import { COLLECTOR_SETTINGS, parseCollectorSettings } from '../collector/settings/options.ts';
import { type Setting, settingName } from '../common/base/setting.ts';
import { parseBytes } from '../common/base/size.ts';
import { parseHeader } from '../otlp-client/endpoint.ts';

interface Container {
  name: string;
  image: string;
  command: string[];
  args: string[];
  startupProbe: Probe;
  readinessProbe: Probe;
  livenessProbe: Probe;
  ports?: { name: string; containerPort: number }[];
  securityContext: { capabilities: { drop: string[]; add?: string[] } };
  resources: Record<'requests' | 'limits', Record<'memory' | 'ephemeral-storage', string>>;
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
}

interface Probe {
  httpGet: { path: string; port: string };
}

interface Volume {
  name: string;
  configMap?: { name: string };
  secret?: { secretName: string; items: { key: string; path: string }[] };
}

interface Manifest {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec: {
    template: {
      metadata: { labels: Record<string, string> };
      spec: { containers: Container[]; volumes: Volume[]; terminationGracePeriodSeconds: number };
    };
    selector: Record<string, string>;
    ports: { name: string; port: number; targetPort: string }[];
    podManagementPolicy?: string;
    volumeClaimTemplates?: { metadata: { name: string } }[];
  };
}

const root = packageRoot();
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

const FILES = ['deploy/kubernetes', 'deploy/helm/cases'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.yaml') && !name.endsWith('.values.yaml'))
    .map((name) => join(folder, name)),
);

const SETTINGS: Record<string, readonly Setting[]> = { agent: AGENT_SETTINGS, collector: COLLECTOR_SETTINGS };

const manifestsOf = (path: string): Manifest[] =>
  parseAllDocuments(read(path)).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });

const workloadsOf = (path: string): Manifest[] =>
  manifestsOf(path).filter(({ kind }) => ['DaemonSet', 'StatefulSet', 'Deployment'].includes(kind));

/** Ours, each with its manifest. */
const POD_CASES = FILES.flatMap((path) =>
  workloadsOf(path)
    .flatMap((manifest) =>
      manifest.spec.template.spec.containers.map((container) => ({ manifest, container })),
    )
    .filter(({ container }) => container.name in SETTINGS)
    .map(({ manifest, container }) => [`${path}: ${container.name}`, path, manifest, container] as const),
);

/** As the command line's parser makes them. */
function valuesOf([command = '', ...flags]: string[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const text of flags) {
    if (text.startsWith('--config=')) continue;
    const [, flag = '', value] = /^--([a-z-]+)(?:=(.*))?$/s.exec(text) ?? [];
    const setting = SETTINGS[command]!.find((one) => one.flag === flag);
    if (setting === undefined) throw new Error(`everyframe ${command} has no flag ${text}`);
    expect(value !== undefined, text).toBe(setting.value !== undefined);
    const name = settingName(flag);
    if (setting.repeatable) values[name] = [...((values[name] as string[]) ?? []), value];
    else values[name] = value ?? true;
  }
  return values;
}

const unit = (name: string, key: string): string =>
  new RegExp(`^${key}=(.*)$`, 'm').exec(read(`deploy/systemd/everyframe-${name}.service`))![1]!;

it('there are manifests', () => {
  expect(FILES.length).toBeGreaterThanOrEqual(6);
  expect(POD_CASES.filter(([name]) => name.endsWith(': agent')).length).toBeGreaterThanOrEqual(5);
  expect(POD_CASES.filter(([name]) => name.endsWith(': collector')).length).toBeGreaterThanOrEqual(5);
});

it('the chart has the version of the product', () => {
  const chart = parse(read('deploy/helm/everyframe/Chart.yaml'));
  expect(chart).toMatchObject({ version, appVersion: version });
});

describe.each(POD_CASES)('%s', (_name, path, { spec }, container) => {
  const [command = ''] = container.args;
  const pod = spec.template.spec;
  // what the file of settings says beside
  const name = pod.volumes.find(({ configMap }) => configMap)!.configMap!.name;
  const file = manifestsOf(path).find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)!
    .data!['config.yaml']!;
  const settings = parseConfig(file, 'config.yaml', {});
  const values = {
    ...(command === 'agent' ? settings.agent : settings.collector).values,
    ...valuesOf(container.args),
  };

  it('starts a command of the product with flags that it takes', () => {
    expect(container.command).toEqual(['/usr/bin/everyframe']);
    expect(container.image).toMatch(/(^|\/)everyframe(:|@sha256:)/);
    expect(command).toBe(container.name);
    expect(settings.notes).toEqual([]);
    expect(container.args[1]).toBe('--config=/etc/everyframe/config/config.yaml');
    expect(container.volumeMounts).toContainEqual({
      name: 'config',
      mountPath: '/etc/everyframe/config',
      readOnly: true,
    });
    if (command === 'agent') parseAgentOptions(values);
    else parseCollectorSettings(values);
  });

  it('has the rights and the memory of the systemd unit', () => {
    const { drop, add = [] } = container.securityContext.capabilities;
    const capabilities = add.map((name) => `CAP_${name}`);
    expect(drop).toEqual(['ALL']);
    const inUnit = unit(command, 'CapabilityBoundingSet').split(' ').filter(Boolean);
    const more = path.includes('/all.') && command === 'agent' ? ['CAP_SYS_ADMIN', 'CAP_SYS_RESOURCE'] : [];
    expect(capabilities).toEqual([...inUnit, ...more]);
    if (command === 'agent') {
      const used = missingFrom(0n, { kernelSymbolsVisible: false }).map(({ name }) => name);
      expect(inUnit.toSorted()).toEqual(used.toSorted());
    }
    const limit = parseBytes(`${container.resources.limits.memory}B`);
    expect(limit).toBe(parseBytes(unit(command, 'MemoryMax').replace(/([MG])$/, '$1iB')));
    expect(pod.terminationGracePeriodSeconds).toBe(Number(unit(command, 'TimeoutStopSec')));
    if (command !== 'agent') return;
    const { maxMemory } = parseAgentOptions(values);
    const log = { info: expect.fail, warn: expect.fail };
    expect(agentBudget(maxMemory, { bytes: limit, file: '' }, log)).toBe(maxMemory);
  });

  it('finds each file that a flag names in what is mounted', () => {
    const volumes = [...pod.volumes, ...(spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata)];
    for (const { name } of container.volumeMounts) expect(volumes.map((one) => one.name)).toContain(name);
    for (const file of Object.values(values).flat()) {
      if (typeof file !== 'string' || !file.startsWith('/')) continue;
      const mount = container.volumeMounts.find(({ mountPath }) => `${file}/`.startsWith(`${mountPath}/`));
      expect(mount, file).toBeDefined();
      const secret = pod.volumes.find(({ name }) => name === mount!.name)?.secret;
      if (secret) expect(secret.items.map((item) => `${mount!.mountPath}/${item.path}`)).toContain(file);
    }
  });

  it('has its cache in a folder that it makes itself: the kubelet lets everybody write to an emptyDir', () => {
    if (command !== 'agent') return;
    const { symbolCache } = parseAgentOptions(values);
    const { mountPath } = container.volumeMounts.find((one) => one.name === 'cache')!;
    expect(symbolCache!.startsWith(`${mountPath}/`)).toBe(true);
  });

  it('asks for room on the disk: the scheduler takes the limit where nothing is said', () => {
    const { requests, limits } = container.resources;
    expect(Object.keys(requests).toSorted()).toEqual(Object.keys(limits).toSorted());
    expect(parseBytes(`${requests['ephemeral-storage']}B`)).toBeLessThanOrEqual(parseBytes('256MiB'));
  });

  it('is asked for its health where it answers', async () => {
    const server = await startHealthServer('127.0.0.1:0', { problem: () => undefined, metrics: () => [] });
    for (const { httpGet } of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
      expect(container.ports!.map(({ name }) => name)).toContain(httpGet.port);
      expect((await fetch(`http://${server.address}${httpGet.path}`)).status).toBe(200);
    }
    server.close();
  });

  it('listens and sends where the Service is', () => {
    const manifests = manifestsOf(path);
    if (command === 'agent') {
      const { port: metricsPort } = parseListenAddress(parseAgentOptions(values).metricsAddress!);
      expect(container.ports!.map(({ containerPort }) => containerPort)).toEqual([metricsPort]);
      const [host, port] = String(parseAgentOptions(values).collectionAgent).split(':');
      const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === host);
      if (service) expect(service.spec.ports.map((one) => String(one.port))).toContain(port);
      else expect(host).toContain('.');
      return;
    }
    const { grpcListen, httpListen, pageListen, metricsAddress } = parseCollectorSettings(values);
    const listens = [grpcListen, httpListen, pageListen, metricsAddress].map(
      (address) => `${parseListenAddress(address!).port}`,
    );
    expect(container.ports!.map(({ containerPort }) => `${containerPort}`)).toEqual(listens);
    const service = manifests.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name.endsWith('-collector'),
    );
    expect(service!.spec.ports.map(({ targetPort }) => targetPort)).toEqual(
      container.ports!.map(({ name }) => name).filter((name) => name !== 'metrics'),
    );
    expect(spec.template.metadata.labels).toMatchObject(service!.spec.selector);
  });
});

it.each(FILES)('%s: an upgrade replaces pods that never got ready', (path) => {
  for (const { kind, spec } of workloadsOf(path))
    expect([kind, spec.podManagementPolicy]).toEqual([kind, kind === 'StatefulSet' ? 'Parallel' : undefined]);
});

it('the token that the chart makes is one that the collector takes, and the header names it', () => {
  const template = read('deploy/helm/everyframe/templates/token.yaml');
  expect(template).toContain('randAlphaNum 40');
  const [, format] = /headers: \{\{ printf "(.*)" \$token/.exec(template)!;
  expect(parseHeader(format!.replace('%s', 'x'.repeat(40)), 'headers')).toEqual([
    'authorization',
    `Bearer ${'x'.repeat(40)}`,
  ]);
});
