/**
 * The JSON schema of /etc/everyframe/config.yaml, for editors: made of the tables of settings and the schemas (valibot)
 * that read them. `node dist/scripts/config-schema.js` writes deploy/config.schema.json, `--check` compares.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { packageRoot } from '../agent/base/package-root.ts';
import { agentSchema } from '../agent/settings/options.ts';
import { FILE_SETTINGS } from '../cli/config/config-file.ts';
import { collectorSchema } from '../collector/settings/options.ts';
import { type Setting, settingName } from '../common/base/setting.ts';

type Entries = Record<string, v.GenericSchema>;

/** Put in when the file is read. */
const reference = v.pipe(v.string(), v.regex(/\$\{[^}]+\}/));
const text = v.union([v.string(), v.number()]);

/** Of numbers, which the schemas that read settings know as texts. */
function numberOf(entry: v.GenericSchema | undefined): v.GenericSchema | undefined {
  const { min, max, integer } = entry ? (v.getMetadata(entry) as Record<string, unknown>) : {};
  if (typeof min !== 'number' || typeof max !== 'number') return undefined;
  const number = v.pipe(v.number(), v.minValue(min), v.maxValue(max));
  return v.union([integer ? v.pipe(number, v.integer()) : number, reference]);
}

function schemaOf({ value, repeatable, flag }: Setting, entry: v.GenericSchema | undefined): v.GenericSchema {
  if (value === undefined) return v.union([v.boolean(), reference]);
  if (flag === 'header') return v.union([v.record(v.string(), text), v.array(v.string())]);
  if (repeatable) return v.union([v.string(), v.array(v.string())]);
  const words = entry as { type?: string; options?: string[] } | undefined;
  if (words?.type === 'picklist') return v.union([v.picklist(words.options!), reference]);
  return numberOf(entry) ?? text;
}

function sectionOf(settings: readonly Setting[], entries: Entries): v.GenericSchema {
  const properties = settings.map((setting) => {
    const told =
      setting.default === undefined ? setting.help : `${setting.help} (default: ${setting.default})`;
    const schema = v.pipe(schemaOf(setting, entries[settingName(setting.flag)]), v.description(told));
    return [setting.flag, v.optional(v.nullable(schema))];
  });
  return v.optional(v.nullable(v.strictObject(Object.fromEntries(properties))));
}

export function configSchema(): JsonSchema {
  const file = v.strictObject({
    agent: sectionOf(FILE_SETTINGS.agent, agentSchema.entries),
    collector: sectionOf(FILE_SETTINGS.collector, collectorSchema.entries),
  });
  return { title: 'Settings of everyframe', ...toJsonSchema(file as never, { errorMode: 'throw' }) };
}

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
