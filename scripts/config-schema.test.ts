// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what a file has put in
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { configSchema } from './config-schema.ts';

const root = join(import.meta.dirname, '..');
const schema = configSchema();
// its draft is what Ajv takes by default
const isValid = (text: string): boolean => new Ajv({ strict: false }).validate(schema as object, parse(text));

it('is the one that is published: node dist/scripts/config-schema.js renews it', () => {
  expect(JSON.parse(readFileSync(join(root, 'deploy/config.schema.json'), 'utf8'))).toEqual(
    JSON.parse(JSON.stringify(schema)),
  );
});

it.each([
  ['agent: {samples-per-second: 97, disable-tls: true, collection-agent: [a, b], symbols: names}', true],
  ['agent: {samples-per-second: "${HZ:-20}", header: {a: b}, tls-ca: }\ncollector: {max-disk: 10GiB}', true],
  ['collector:', true],
  ['agent: {samples-per-second: 0}', false],
  ['agent: {samples-per-second: fast}', false],
  ['agent: {symbols: some}', false],
  ['agent: {verbose: 1}', false],
  ['agent: {sample-per-second: 1}', false],
  ['collector: {child: true}', false],
])('%s: %s', (text, expected) => expect(isValid(text)).toBe(expected));

it('takes the file that packages install', () => {
  expect(isValid(readFileSync(join(root, 'deploy/config.yaml'), 'utf8'))).toBe(true);
});
