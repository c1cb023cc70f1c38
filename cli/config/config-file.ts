/** The file that has settings of agent and collector: sections `agent` and `collector`, keys as flags are named. */
import { dirname, resolve } from 'node:path';
import { IGNORED_FLAGS } from '../../agent/settings/ignored-flags.ts';
import { AGENT_SETTINGS } from '../../agent/settings/options.ts';
import { COLLECTOR_SETTINGS } from '../../collector/settings/options.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { closestNames } from '../../common/base/closest-names.ts';
import { type Setting, settingName } from '../../common/base/setting.ts';
import type { Environment, SettingLayer } from '../../common/base/setting-layers.ts';
import { inWords } from '../../common/base/system-error.ts';
import { readSettingFile } from '../../otlp-client/setting-file.ts';
import { isOtelCollectorConfig, settingsOfOtelCollector } from './otel-collector-config.ts';
import {
  type ConfigEntry,
  type ConfigValue,
  isMapValue,
  MAX_YAML_BYTES,
  Mistakes,
  readYaml,
} from './yaml-file.ts';

export interface ConfigFile {
  path: string;
  agent: SettingLayer;
  collector: SettingLayer;
  /** What was understood and has no effect. */
  notes: string[];
}

/** Secrets are short. */
const MAX_SECRET_BYTES = 64 << 10;

export const FILE_SETTINGS: Record<'agent' | 'collector', readonly Setting[]> = {
  agent: AGENT_SETTINGS,
  collector: COLLECTOR_SETTINGS.filter(({ isHidden }) => !isHidden),
};

/**
 * @param wrong takes what is wrong, each with file, line and key, where more is to be looked at
 * @throws BadSetting with all of that otherwise, and where the file can't be read
 */
export function readConfigFile(path: string, env: Environment, wrong?: string[]): ConfigFile {
  let text: string;
  try {
    text = readSettingFile(path, MAX_YAML_BYTES).toString('utf8');
  } catch (error) {
    throw new BadSetting(`can't read ${path}: ${inWords(error)}`);
  }
  return parseConfig(text, path, env, wrong);
}

export function parseConfig(text: string, path: string, env: Environment, wrong?: string[]): ConfigFile {
  const mistakes = new Mistakes(path);
  const entries = readYaml(text, mistakes, {
    env,
    readFile: (name) => readSecret(resolve(dirname(path), name)),
  });
  const agent = new FileLayer(path);
  const collector = new FileLayer(path);
  const notes: string[] = [];
  if (isOtelCollectorConfig(entries)) {
    const found = settingsOfOtelCollector(entries);
    takeSection('agent', found.entries, agent, mistakes, notes);
    if (found.ignored.length > 0) notes.push(`no effect here: ${found.ignored.join(', ')}`);
  } else takeSections(entries, { agent, collector }, mistakes, notes);
  if (wrong === undefined) mistakes.throwAny();
  else wrong.push(...mistakes.lines);
  return { path, agent, collector, notes: notes.map((note) => `${path}: ${note}`) };
}

function readSecret(path: string): string {
  try {
    return readSettingFile(path, MAX_SECRET_BYTES).toString('utf8');
  } catch (error) {
    throw new Error(`can't read ${path}: ${inWords(error)}`);
  }
}

class FileLayer implements SettingLayer {
  readonly values: Record<string, unknown> = {};
  readonly #path: string;
  readonly #lines: Record<string, number> = {};

  constructor(path: string) {
    this.#path = path;
  }

  set(flag: string, value: unknown, line: number): void {
    const name = settingName(flag);
    this.values[name] = value;
    this.#lines[name] = line;
  }

  origin(name: string): string {
    return `${this.#path}:${this.#lines[name]}`;
  }
}

type Layers = Record<'agent' | 'collector', FileLayer>;

/** Settings of the agent may stand at the top, as the OpenTelemetry profiler's do. */
function takeSections(
  entries: readonly ConfigEntry[],
  layers: Layers,
  mistakes: Mistakes,
  notes: string[],
): void {
  for (const entry of entries) {
    if (entry.key !== 'agent' && entry.key !== 'collector') {
      takeSection('agent', [entry], layers.agent, mistakes, notes, '');
    } else if (isMapValue(entry.value)) {
      takeSection(entry.key, entry.value, layers[entry.key], mistakes, notes);
    } else if (entry.value !== null)
      mistakes.add(entry.line, `${entry.key} is not a list of settings: indent them below "${entry.key}:"`);
  }
}

function takeSection(
  section: 'agent' | 'collector',
  entries: readonly ConfigEntry[],
  layer: FileLayer,
  mistakes: Mistakes,
  notes: string[],
  prefix = `${section}.`,
): void {
  const table = FILE_SETTINGS[section];
  for (const { key, line, value } of entries) {
    const setting = table.find(({ flag }) => flag === key);
    if (setting) {
      const read = readValue(setting, value);
      if (read instanceof Error) mistakes.add(line, `${prefix}${key} ${read.message}`);
      else if (read !== undefined) layer.set(key, read, line);
    } else if (section === 'agent' && Object.hasOwn(IGNORED_FLAGS, key)) {
      notes.push(`${key} in line ${line} has no effect: ${IGNORED_FLAGS[key]}`);
    } else mistakes.add(line, `${prefix}${key} is not a setting${suggest(key, section, prefix)}`);
  }
}

function suggest(key: string, section: 'agent' | 'collector', prefix: string): string {
  const names = FILE_SETTINGS[section].map(({ flag }) => flag);
  const [closest] = closestNames(key, prefix === '' ? [...names, 'agent', 'collector'] : names);
  if (closest !== undefined) return `: is ${closest} meant?`;
  return `: everyframe ${section} --help lists them`;
}

/** As flags have it: texts, lists of texts, true. */
function readValue({ value: metavariable, repeatable }: Setting, value: ConfigValue): unknown {
  if (value === null) return undefined;
  if (repeatable) {
    if (isMapValue(value)) return pairsOf(value);
    return Array.isArray(value) ? (value as (string | null)[]).filter((each) => each !== null) : [value];
  }
  if (Array.isArray(value)) return new Error('has several values: give one');
  if (metavariable !== undefined) return value;
  if (/^true$/i.test(value)) return true;
  if (/^false$/i.test(value)) return false;
  return new Error(`is "${value}": give true or false`);
}

/** `header: {authorization: Bearer …}` as NAME=VALUE. */
function pairsOf(entries: readonly ConfigEntry[]): string[] | Error {
  const bad = entries.find(({ value }) => Array.isArray(value));
  if (bad) return new Error(`.${bad.key} has several values: give one`);
  return entries.map(({ key, value }) => `${key}=${value ?? ''}`);
}
