/**
 * The JSON schema of /etc/everyframe/config.yaml, for editors: made of the tables of settings and the schemas (valibot)
 * that read them. `node dist/scripts/config-schema.js` writes deploy/config.schema.json, `--check` compares.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { packageRoot } from '../agent/base/package-root.ts';
import { agentSchema } from '../agent/settings/options.ts';
import { FILE_SETTINGS } from '../cli/config/config-file.ts';
import { collectorSchema } from '../collector/settings/options.ts';
import { type Setting, settingName } from '../common/base/setting.ts';

type JsonSchema = Record<string, unknown>;
type Entries = Record<string, v.GenericSchema>;

/** Put in when the file is read. */
const reference: JsonSchema = { type: 'string', pattern: '\\$\\{[^}]+\\}' };
const texts: JsonSchema = { type: 'array', items: { type: 'string' } };

/** Of numbers, which the schemas that read settings know as texts. */
function numberOf(entry: v.GenericSchema | undefined): JsonSchema[] | undefined {
  const { min, max, integer } = entry ? (v.getMetadata(entry) as Record<string, unknown>) : {};
  if (typeof min !== 'number' || typeof max !== 'number') return undefined;
  return [{ type: integer ? 'integer' : 'number', minimum: min, maximum: max }, reference];
}

/** What a value may be; null says nothing. */
function formsOf({ value, repeatable, flag }: Setting, entry: v.GenericSchema | undefined): JsonSchema[] {
  if (value === undefined) return [{ type: 'boolean' }, reference];
  if (flag === 'header') return [{ type: 'object', additionalProperties: { type: 'string' } }, texts];
  if (repeatable) return [{ type: 'string' }, texts];
  const words = entry as { type?: string; options?: string[] } | undefined;
  if (words?.type === 'picklist') return [{ enum: words.options }, reference];
  return numberOf(entry) ?? [{ type: ['string', 'number'] }];
}

function sectionOf(settings: readonly Setting[], entries: Entries): JsonSchema {
  const properties = settings.map((setting) => {
    const description =
      setting.default === undefined ? setting.help : `${setting.help} (default: ${setting.default})`;
    const anyOf = [...formsOf(setting, entries[settingName(setting.flag)]), { type: 'null' }];
    return [setting.flag, { description, anyOf }];
  });
  return {
    type: ['object', 'null'],
    properties: Object.fromEntries(properties),
    additionalProperties: false,
  };
}

export const configSchema = (): JsonSchema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Settings of everyframe',
  type: ['object', 'null'],
  properties: {
    agent: sectionOf(FILE_SETTINGS.agent, agentSchema.entries),
    collector: sectionOf(FILE_SETTINGS.collector, collectorSchema.entries),
  },
  additionalProperties: false,
});

const PATH = 'deploy/config.schema.json';

function main(): void {
  const path = join(packageRoot(), PATH);
  const schema = `${JSON.stringify(configSchema(), undefined, 2)}\n`;
  if (!process.argv.includes('--check')) writeFileSync(path, schema);
  else if (readFileSync(path, 'utf8') !== schema) {
    console.error(
      `${PATH} is not what the settings say: run \`node dist/scripts/config-schema.js\` and commit it`,
    );
    process.exitCode = 1;
  }
}

if (import.meta.filename === process.argv[1]) main();
