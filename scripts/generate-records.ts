/**
 * Writes the TypeScript view of what kernel and user space share: struct offsets out of the BPF object's BTF,
 * enums, limits and counters out of the C headers, and the list of runtimes. `--check` fails where a committed file is out of date.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

interface BtfType {
  id: number;
  kind: string;
  name: string;
  size?: number;
  type_id?: number;
  members?: { name: string; type_id: number; bits_offset: number }[];
}

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const folders = (path: string): string[] =>
  readdirSync(join(root, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
/** What kernel and user space share: the records of all, and those of each runtime. */
const recordHeaders = (): string[] => [
  'ebpf/records.h',
  ...folders('ebpf').map((folder) => `ebpf/${folder}/records.h`),
];
const pascal = (name: string): string =>
  name.replace(/^ef_/, '').replace(/(^|_)([a-z0-9])/g, (_, _bar, c: string) => c.toUpperCase());
const camel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, c: string) => c.toUpperCase());
const upper = (name: string): string => name.replace(/^ef_/, '').toUpperCase();

function loadBtf(): Map<number, BtfType> {
  const json = execFileSync('bpftool', ['btf', 'dump', 'file', join(root, 'build/everyframe.bpf.o'), '-j'], {
    maxBuffer: 64 << 20,
    encoding: 'utf8',
  });
  const { types } = JSON.parse(json) as { types: BtfType[] };
  return new Map(types.map((type) => [type.id, type]));
}

/** Offset of every member, nested structs flattened: `process_tgid`. */
function offsets(types: Map<number, BtfType>, type: BtfType, base = 0, prefix = ''): [string, number][] {
  return (type.members ?? []).flatMap((member): [string, number][] => {
    const at = base + member.bits_offset / 8;
    let inner = types.get(member.type_id);
    while (inner && (inner.kind === 'TYPEDEF' || inner.kind === 'VOLATILE' || inner.kind === 'CONST')) {
      inner = types.get(inner.type_id ?? 0);
    }
    return inner?.kind === 'STRUCT'
      ? offsets(types, inner, at, `${prefix}${member.name}_`)
      : [[camel(prefix + member.name), at]];
  });
}

function structView(types: Map<number, BtfType>, name: string): string {
  const type = [...types.values()].find((t) => t.kind === 'STRUCT' && t.name === name);
  if (!type) throw new Error(`the BPF object's BTF has no struct ${name}: does a program use it?`);
  const lines = offsets(types, type).map(([member, offset]) => `  ${member}: ${offset},`);
  return `/** Size and byte offsets of struct ${name}. */\nexport const ${upper(name)} = {\n  bytes: ${type.size},\n${lines.join('\n')}\n} as const;\n`;
}

/** Members that have a number of their own; `prefix` is that of the enum's members. */
function enumView(name: string, body: string): string {
  const members = [...body.matchAll(/^\s*(EF_\w+) = (\d+)/gm)].map(([, member = '', value = '']) => ({
    member,
    value,
  }));
  const prefix = commonPrefix(members.map(({ member }) => member));
  const lines = members.map(({ member, value }) => `  ${member.slice(prefix.length)}: ${value},`);
  return `export const ${pascal(name)} = {\n${lines.join('\n')}\n} as const;\n`;
}

/** `EF_V8_` of EF_V8_JIT and EF_V8_STUB. */
function commonPrefix(names: readonly string[]): string {
  let prefix = names[0] ?? '';
  for (const name of names) while (!name.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix.slice(0, prefix.lastIndexOf('_') + 1);
}

function limitsView(header: string): string {
  const limits = [...header.matchAll(/^#define (EF_\w+) (\d+)(?:ULL)?(?: +\/\*.*)?$/gm)];
  return limits.map(([, name, value]) => `export const ${name} = ${value};`).join('\n');
}

interface RuntimeRow {
  name: string;
  folder: string;
  map: string;
}

/** ebpf/runtimes.def. */
function runtimes(): RuntimeRow[] {
  const list = read('ebpf/runtimes.def');
  const rows = [...list.matchAll(/^RUNTIME\((\w+), (\w+), (\w+), \w+\)$/gm)].map(
    ([, name = '', folder = '', map = '']) => ({ name, folder, map }),
  );
  if (rows.length !== [...list.matchAll(/^\s*RUNTIME\(/gm)].length)
    throw new Error('ebpf/runtimes.def has a line that is not RUNTIME(NAME, folder, map, whose code)');
  return rows;
}

/** Members that an enum has of runtimes.def, written out: they follow the last one before them. */
function withRuntimes(header: string): string {
  const included =
    /((EF_\w+) = (\d+),[^}]*?)#define RUNTIME\([^)]*\) (EF_\w+_)##name,\n#include "runtimes.def"\n#undef RUNTIME/g;
  return header.replace(included, (_, before: string, _last, _value, prefix: string) => {
    const last = Number([...before.matchAll(/ = (\d+),/g)].at(-1)?.[1]);
    return (
      before +
      runtimes()
        .map(({ name }, i) => `\t${prefix}${name} = ${last + 1 + i},`)
        .join('\n')
    );
  });
}

function runtimesView(): string {
  const rows = runtimes().map(({ name, map }) => `  ${name}: '${map}',`);
  return `/** The BPF map of each runtime: ebpf/runtimes.def. */\nexport const RUNTIME_MAPS = {\n${rows.join('\n')}\n} as const;\n`;
}

/** Each folder's plugin.ts exports the plug-in under the folder's name. */
function pluginsView(): string {
  const folders = runtimes().map(({ folder }) => folder);
  return [
    '// Generated by scripts/generate-records.ts from ebpf/runtimes.def. Do not edit.',
    "import type { RuntimePlugin } from '../interpreters/contract.ts';",
    ...folders.map((folder) => `import { ${folder} } from '../interpreters/${folder}/plugin.ts';`),
    '\n/** All runtimes that are known, in the order of their IDs. */',
    `export const RUNTIMES: readonly RuntimePlugin[] = [${folders.join(', ')}];\n`,
  ].join('\n');
}

function recordsView(): string {
  const types = loadBtf();
  const header = withRuntimes(recordHeaders().map(read).join('\n'));
  const enums = [...header.matchAll(/^enum (ef_\w+) \{([^}]*)\}/gm)];
  const structs = [...header.matchAll(/^struct (ef_\w+) \{/gm)];
  return [
    '// Generated by scripts/generate-records.ts from the records.h of ebpf/ and the BPF object. Do not edit.',
    limitsView(header),
    ...enums.map(([, name = '', body = '']) => enumView(name, body)),
    profileTypesView(),
    runtimesView(),
    ...structs.map(([, name = '']) => structView(types, name)),
  ].join('\n');
}

function counters(): { name: string; text: string }[] {
  const header = read('ebpf/counters.h');
  return [...header.matchAll(/X\((\w+),[\s\\]*"([^"]*)"\)/g)].map(([, name, text]) => ({
    name: name as string,
    text: text as string,
  }));
}

function countersView(): string {
  const rows = counters().map(({ name, text }) => `  { name: '${name}', text: ${JSON.stringify(text)} },`);
  return [
    '// Generated by scripts/generate-records.ts from ebpf/counters.h. Do not edit.',
    `export const BPF_COUNTERS = [\n${rows.join('\n')}\n] as const;`,
    "export type BpfCounter = (typeof BPF_COUNTERS)[number]['name'];\n",
  ].join('\n');
}

function countersDoc(): string {
  const rows = counters().map(({ name, text }) => `| \`${name}\` | ${text} |`);
  return `# Counters of the kernel side\n\nGenerated from \`ebpf/counters.h\`. Each is a sum over all CPUs since the start.\n\n| counter | what it counts |\n|---|---|\n${rows.join('\n')}\n`;
}

interface ProfileTypeRow {
  name: string;
  sampleType: { type: string; unit: string };
  periodType: { type: string; unit: string };
  text: string;
}

function profileTypes(): ProfileTypeRow[] {
  const row = /X\((\w+), "(\w+)", "(\w+)", "(\w*)", "(\w*)",[\s\\]*"([^"]*)"\)/g;
  const header = read('ebpf/profile-types.h');
  const rows = [...header.matchAll(row)].map(
    ([, name = '', type = '', unit = '', periodType = '', periodUnit = '', text = '']) => ({
      name,
      sampleType: { type, unit },
      periodType: { type: periodType, unit: periodUnit },
      text,
    }),
  );
  if (rows.length !== [...header.matchAll(/^\tX\(/gm)].length)
    throw new Error(
      'ebpf/profile-types.h has a line that is not X(name, "type", "unit", "type", "unit", "text")',
    );
  return rows;
}

function profileTypesView(): string {
  const types = profileTypes();
  const valueType = ({ type, unit }: { type: string; unit: string }): string =>
    `{ type: '${type}', unit: '${unit}' }`;
  const rows = types.map(
    ({ name, sampleType, periodType }) =>
      `  { name: '${name}', sampleType: ${valueType(sampleType)}, periodType: ${valueType(periodType)} },`,
  );
  return [
    '/** enum ef_origin: where a sample comes from. */',
    `export const Origin = {\n${types.map(({ name }, i) => `  ${name}: ${i},`).join('\n')}\n} as const;\n`,
    '/** What the values of samples measure, by origin: ebpf/profile-types.h. */',
    `export const PROFILE_TYPES = [\n${rows.join('\n')}\n] as const;\n`,
  ].join('\n');
}

function profileTypesDoc(): string {
  const rows = profileTypes().map(
    ({ sampleType, periodType, text }) =>
      `| \`${sampleType.type}/${sampleType.unit}\` | \`${periodType.type}/${periodType.unit}\` | ${text} |`,
  );
  return `# What the agent samples\n\nGenerated from \`ebpf/profile-types.h\`. Type and unit of the values, and of the period that one of them stands for. Types of files and other senders, how they are named and added up: [types of values](value-types.md).\n\n| values | period | what is sampled |\n|---|---|---|\n${rows.join('\n')}\n`;
}

const outputs: [string, string][] = [
  ['agent/records/records.gen.ts', recordsView()],
  ['agent/records/counters.gen.ts', countersView()],
  ['agent/runtimes/runtimes.gen.ts', pluginsView()],
  ['docs/counters.md', countersDoc()],
  ['docs/profile-types.md', profileTypesDoc()],
];
const check = process.argv.includes('--check');
for (const [path, text] of outputs) {
  const current = existsSync(join(root, path)) ? read(path) : '';
  if (current === text) continue;
  if (check) {
    console.error(`${path} is out of date: run \`node dist/scripts/generate-records.js\` and commit it`);
    process.exitCode = 1;
  } else {
    writeFileSync(join(root, path), text);
    console.log(`wrote ${path}`);
  }
}
