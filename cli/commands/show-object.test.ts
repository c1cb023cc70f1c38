import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { buildElf } from '../../common/elf/build-elf.ts';
import { runShow } from '../../test/support/show-command.ts';
import { registerShowObject } from './show-object.ts';

const folder = mkdtempSync(join(tmpdir(), 'show-object-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the command writes to standard output about a file of these bytes. */
async function show(bytes: Uint8Array, ...flags: string[]): Promise<string> {
  const path = join(folder, 'file');
  writeFileSync(path, bytes);
  return runShow(registerShowObject, 'object', path, ...flags);
}

const segments = [{ type: 1, flags: 5, offset: 0x1000, filesz: 0x1000 }];
const sections = [{ name: '.text', addr: 0x1000, bytes: new Uint8Array(0x1000) }];

describe('show object', () => {
  const whole = buildElf({ segments, sections });
  const bare = buildElf({ segments, sections, sectionHeaders: false, size: 0x2000 });
  it.each([
    ['in its section headers', whole, whole.length - 100, 100],
    ['before its section headers', whole, 0x1800, whole.length - 0x1800],
    ['and has no section headers', bare, 0x1ff0, 16],
  ])('says that a file was cut %s', async (_, bytes, kept, missing) => {
    const cut = bytes.subarray(0, kept);
    expect(JSON.parse(await show(cut, '--json')).missingBytes).toBe(missing);
    expect(await show(cut)).toContain(`\ncut           the last ${missing} bytes are missing\n`);
  });

  it('says nothing of the kind of whole files', async () => {
    const node = readFileSync(process.execPath);
    for (const bytes of [whole, node]) {
      expect(JSON.parse(await show(bytes, '--json')).missingBytes).toBe(0);
      expect(await show(bytes)).not.toMatch(/^cut /m);
    }
  });
});
