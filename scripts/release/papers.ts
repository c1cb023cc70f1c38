/** What a release is made of, for people and programs: licences (text and SPDX) and a bill of materials (CycloneDX). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { duckdbName, MUSL_NODE, NODE_VERSION, type Target, ZIG } from './parts.ts';
import type { Release } from './release.ts';

interface Part {
  name: string;
  version: string;
  /** SPDX expression. */
  licence: string;
  /** Package URL. */
  purl: string;
  text: string;
}

/** Of what is linked in or copied, and stands in no package-lock.json: Debian's sources. */
const LINKED = [
  { name: 'libbpf', licence: 'LGPL-2.1-only OR BSD-2-Clause', files: ['LICENSE.BSD-2-Clause'] },
  { name: 'elfutils', licence: 'GPL-2.0-or-later OR LGPL-3.0-or-later', files: ['COPYING-LGPLV3'] },
  { name: 'zlib', licence: 'Zlib', files: ['README'] },
];
const GCC = 'GPL-3.0-or-later WITH GCC-exception-3.1';
/** In the programs that are linked statically. */
const STATIC = { name: 'glibc', version: '2.36', licence: 'LGPL-2.1-or-later' };
/** libstdc++ and libgcc_s, as they are, and parts of them in those programs: of Debian 11; for musl also those of Node's wheel. */
const COPIED = [{ name: 'gcc-10', version: '10.2.1-6', licence: GCC }, STATIC];

function npmPart(folder: string, name: string): Part {
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
    license?: string;
  };
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const text = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { name, version, licence: license ?? 'NOASSERTION', purl, text };
}

function debianParts(sources: Record<string, string>): Part[] {
  return LINKED.map(({ name, licence, files }) => {
    const folder = sources[name]!;
    const head = readFileSync(join(folder, 'debian/changelog'), 'utf8');
    const version = /\(([^)]+)\)/.exec(head)![1]!;
    const text = files.map((file) => readFileSync(join(folder, file), 'utf8')).join('\n');
    return { name, version, licence, purl: `pkg:deb/debian/${name}@${version}?arch=source`, text };
  });
}

export function partsOf(
  root: string,
  packages: Iterable<string>,
  folders: { node: string; duckdb: string; sources: Record<string, string> },
  target: Target,
): Part[] {
  const copied = COPIED.map((part) => ({
    ...part,
    purl: `pkg:deb/debian/${part.name}@${part.version}`,
    text: '',
  }));
  return [
    ...(target.libc === 'musl' ? muslParts(folders.node) : [nodePart(folders.node, target)]),
    ...debianParts(folders.sources),
    ...copied,
    npmPart(folders.duckdb, duckdbName(target)),
    ...[...packages].sort().map((name) => npmPart(join(root, 'node_modules', name), name)),
  ];
}

const nodePart = (folder: string, { arch }: Target): Part => ({
  name: 'node',
  version: NODE_VERSION,
  licence: 'MIT',
  purl: `pkg:npm/node-linux-${arch.node}@${NODE_VERSION}`,
  text: readFileSync(join(folder, 'LICENSE'), 'utf8'),
});

/** Node with its libstdc++, and what Zig has linked into the addon: libc++ and compiler-rt of LLVM. */
function muslParts(folder: string): Part[] {
  const { name, version } = MUSL_NODE;
  const wheel = `pkg:pypi/${name}@${version}`;
  const licence = join(folder, `${name.replaceAll('-', '_')}-${version}.dist-info/licenses/LICENSE`);
  return [
    { name: 'node', version, licence: 'MIT', purl: wheel, text: readFileSync(licence, 'utf8') },
    { name: 'libstdc++', version: '6.0.33', licence: GCC, purl: `${wheel}#libstdc%2B%2B`, text: '' },
    {
      name: 'libc++',
      version: `of Zig ${ZIG.version}`,
      licence: 'Apache-2.0 WITH LLVM-exception',
      purl: `pkg:pypi/${ZIG.name}@${ZIG.version}`,
      text: '',
    },
  ];
}

export function writePapers(target: string, release: Release, parts: readonly Part[]): void {
  const json = (name: string, value: unknown): void =>
    writeFileSync(join(target, name), `${JSON.stringify(value, null, 1)}\n`);
  json('sbom.cdx.json', cycloneDx(release, parts));
  json('licences.spdx.json', spdx(release, parts));
  const texts = parts
    .filter(({ text }) => text !== '')
    .map(({ name, version, licence, text }) => `=== ${name} ${version}: ${licence}\n\n${text.trim()}\n`);
  writeFileSync(join(target, 'LICENCES.txt'), texts.join('\n'));
}

const isoTime = (epoch: number): string => new Date(epoch * 1000).toISOString().replace('.000', '');

const cycloneDx = ({ version, commit, epoch }: Release, parts: readonly Part[]): object => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: {
    timestamp: isoTime(epoch),
    component: {
      type: 'application',
      name: 'everyframe',
      version,
      licenses: [{ license: { id: 'Apache-2.0' } }],
      properties: [{ name: 'commit', value: commit }],
    },
  },
  components: parts.map(({ name, version: own, licence, purl }) => ({
    type: 'library',
    'bom-ref': purl,
    name,
    version: own,
    purl,
    licenses: [{ expression: licence }],
  })),
});

function spdx({ version, commit, epoch }: Release, parts: readonly Part[]): object {
  const described = parts.map((part, i) => spdxPackage(`SPDXRef-${i}`, part, part.purl));
  const own = { name: 'everyframe', version, licence: 'Apache-2.0' };
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `everyframe-${version}`,
    documentNamespace: `urn:everyframe:${version}:${commit}`,
    creationInfo: { created: isoTime(epoch), creators: ['Tool: everyframe-release'] },
    packages: [spdxPackage('SPDXRef-everyframe', own), ...described],
    relationships: [
      {
        spdxElementId: 'SPDXRef-DOCUMENT',
        relationshipType: 'DESCRIBES',
        relatedSpdxElement: 'SPDXRef-everyframe',
      },
      ...described.map(({ SPDXID }) => ({
        spdxElementId: 'SPDXRef-everyframe',
        relationshipType: 'CONTAINS',
        relatedSpdxElement: SPDXID,
      })),
    ],
  };
}

const spdxPackage = (SPDXID: string, part: Omit<Part, 'purl' | 'text'>, purl?: string) => ({
  SPDXID,
  name: part.name,
  versionInfo: part.version,
  downloadLocation: 'NOASSERTION',
  filesAnalyzed: false,
  licenseConcluded: 'NOASSERTION',
  licenseDeclared: part.licence,
  copyrightText: 'NOASSERTION',
  ...(purl && {
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  }),
});
