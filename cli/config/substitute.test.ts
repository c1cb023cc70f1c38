// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseConfig } from './config-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-config-'));
afterAll(() => rmSync(directory, { recursive: true }));
const parse = async (text: string, env: Record<string, string>) =>
  parseConfig(text, join(directory, 'config.yaml'), env);

describe('substitution', () => {
  const valueFor = async (text: string, env: Record<string, string> = {}): Promise<unknown> =>
    (await parse(`agent:\n  tls-ca: ${text}`, env)).agent.values['tlsCa'];
  const env = { STRING_VALUE: 'value', EMPTY: '', REPLACE_ME: '${STRING_VALUE}' };

  // the examples of OpenTelemetry's specification, configuration/data-model.md
  it.each([
    ['${STRING_VALUE}', 'value'],
    ['${env:STRING_VALUE}', 'value'],
    ['"${STRING_VALUE}"', 'value'],
    ['foo ${STRING_VALUE} ${STRING_VALUE}', 'foo value value'],
    ['${UNDEFINED}', undefined],
    ['${EMPTY:-fallback}', 'fallback'],
    ['${UNDEFINED:-fallback}', 'fallback'],
    ['${REPLACE_ME}', '${STRING_VALUE}'],
    ['${UNDEFINED:-${STRING_VALUE}}', '${STRING_VALUE}'],
    ['$${STRING_VALUE}', '${STRING_VALUE}'],
    ['$$${STRING_VALUE}', '$value'],
    ['$$$${STRING_VALUE}', '$${STRING_VALUE}'],
    ['$${STRING_VALUE:-fallback}', '${STRING_VALUE:-fallback}'],
    ['$${STRING_VALUE:-${STRING_VALUE}}', '${STRING_VALUE:-value}'],
    ['a $$ b', 'a $ b'],
    ['a $ b', 'a $ b'],
    ['"${STRING_VALUE} $$ ${A ${"', 'value $ ${A ${'],
  ])('%s is %j', async (text, expected) => expect(await valueFor(text, env)).toBe(expected));

  it.each(['${1A}', '${STRING_VALUE:?error}', '${}'])('%s is an error', async (text) => {
    await expect(valueFor(text, env)).rejects.toThrow(/config\.yaml:2: .* is not a reference/);
  });

  it('takes a time that grows with the text', async () => {
    const begins = '${A'.repeat(200_000);
    const start = performance.now();
    expect(await valueFor(begins)).toBe(begins);
    expect(performance.now() - start).toBeLessThan(5000);
  });

  it('reads secrets from files', async () => {
    writeFileSync(join(directory, 'secret'), 's3cret\n');
    expect(await valueFor('${file:secret}')).toBe('s3cret');
    await expect(valueFor('${file:/none}')).rejects.toThrow(/config\.yaml:2: .*no such file/);
  });
});
