import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildElf } from '../../common/elf/build-elf.ts';
import { runShow } from '../../test/support/show-command.ts';
import { registerShowStackDeltas } from './show-stack-deltas.ts';

const folder = mkdtempSync(join(tmpdir(), 'show-stack-deltas-'));
const elf = join(folder, 'function.so');
/** A CIE (rsp + 8) and one FDE: push %rbp at 0x1000, mov %rsp, %rbp at 0x1001. */
const EH_FRAME = Buffer.from(
  `1400000000000000017a5200017810011b0c070890010000
   1c0000001c000000e0cfffff1000000000410e108602430d0600000000000000`.replace(/\s/g, ''),
  'hex',
);

beforeAll(() => {
  const segments = [{ type: 1, flags: 5, offset: 0x1000, filesz: 0x1000 }];
  const sections = [
    { name: '.text', addr: 0x1000, bytes: new Uint8Array(0x1000) },
    { name: '.eh_frame', addr: 0x4000, bytes: EH_FRAME },
  ];
  writeFileSync(elf, buildElf({ segments, sections }));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.restoreAllMocks());

const show = (...args: string[]): Promise<string> =>
  runShow(registerShowStackDeltas, 'stack-deltas', ...args);

describe('show stack-deltas', () => {
  it('prints one JSON object a line', async () => {
    expect(await show(elf, '--json')).toBe(
      `${[
        '{"address":"0x1000","kind":"rule","cfa":"rsp+8","fp":"same","ra":"cfa-8"}',
        '{"address":"0x1001","kind":"rule","cfa":"rsp+16","fp":"cfa-16","ra":"cfa-8"}',
        '{"address":"0x1004","kind":"rule","cfa":"rbp+16","fp":"cfa-16","ra":"cfa-8"}',
        '{"address":"0x1010","kind":"invalid"}',
      ].join('\n')}\n`,
    );
  });

  it('prints a table', async () => {
    const lines = (await show(elf))
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s+/));
    expect(lines[1]).toEqual(['0x1001', 'rule', 'rsp+16', 'cfa-16', 'cfa-8']);
    expect(lines[3]).toEqual(['0x1010', 'invalid']);
  });

  it.each([
    ['0x1003', '0x1001'],
    ['4099', '0x1001'],
    ['0x1000', '0x1000'],
    ['0xfff', '0x0'],
    ['0x9999', '0x1010'],
  ])('--at %s prints the rule that covers it', async (at, address) => {
    const line = await show(elf, '--json', '--at', at);
    expect(JSON.parse(line)).toMatchObject({ address });
  });

  it.each([
    [['--at', '0x'], elf, '--at 0x is not an address: write 0x… or a decimal number'],
    [['--at', '99999999999999999'], elf, /is not an address/],
    [[], join(folder, 'none'), /^can't open .*none: there is no such file or directory$/],
    [[], folder, /is not a regular file: name an executable or a shared library$/],
    [[], import.meta.filename, /show-stack-deltas.test.ts: no ELF file: it does not start with/],
  ])('says what is wrong in a sentence: %s %s', async (options, path, message) => {
    await expect(show(path, ...options)).rejects.toThrow(message);
  });

  it('does not wait for a pipe', async () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    await expect(show(fifo)).rejects.toThrow('is not a regular file');
  });

  it('says that a file has no unwind information', async () => {
    const empty = join(folder, 'empty');
    writeFileSync(empty, buildElf({}));
    const error = vi.spyOn(console, 'error').mockReturnValue(undefined);
    expect(await show(empty)).toBe('');
    expect(error).toHaveBeenCalledWith(`${empty} has no unwind information`);
  });

  it('ends quietly when the reader has seen enough', () => {
    const main = join(import.meta.dirname, '../../dist/cli/main.js');
    const command = `"${process.execPath}" "${main}" show stack-deltas "${process.execPath}" --json | head -1`;
    const { stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', command], { encoding: 'utf8' });
    expect(stdout.split('\n')).toHaveLength(2);
    expect(stderr).toBe('');
  });
});
