/** Files are compiled here: they need a compiler, no rights. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { findNamedSymbols } from '../../../common/symbols/named-symbols.ts';
import { compile, hasTool, scratchFolder } from '../../../test/support/fixtures.ts';
import { detectPhp } from './detect-php.ts';

const elfOf = (path: string) => parseElf(bufferSource(readFileSync(path)));
const SHARED = ['-shared', '-fPIC'];

/** What is found, and where the variable with the number of the pthread key really is. */
function find(compiler: string, source: string, flags: readonly string[]) {
  const name = [source, compiler, ...flags].join('').replaceAll(/\W/g, '-');
  const elf = elfOf(compile(name, compiler, ['-pthread', ...flags], `${source}.c`));
  const key = findNamedSymbols(elf, 'tls_key', ['tls_key']).get('tls_key')?.address;
  return { found: detectPhp(elf)!, key };
}

describe.skipIf(!hasTool('gcc') || process.arch !== 'x64')('a file that says it is PHP', () => {
  it('without threads has its globals in a variable', () => {
    const { found } = find('gcc', 'fake-php', ['-O2', '-rdynamic']);
    expect(found).toMatchObject({ version: '8.2.99', globals: { kind: 'variable' } });
  });

  it.each([
    ['gcc', ['-O2', '-rdynamic'], { isSlot: false, isMusl: false }],
    ['gcc', ['-O0', '-rdynamic', '-no-pie', '-fcf-protection'], { isSlot: false }],
    ['gcc', ['-O2', ...SHARED], { isSlot: true }],
    ['clang', ['-O2', ...SHARED], { isSlot: true }],
    ['musl-gcc', ['-O2', ...SHARED], { isSlot: true, isMusl: true }],
    ['aarch64-linux-gnu-gcc', ['-O2', '-rdynamic'], { isSlot: false }],
    ['aarch64-linux-gnu-gcc', ['-O2', ...SHARED], { isSlot: true }],
  ])('with threads has them behind its pthread key: %s %j', (compiler, flags, expected) => {
    if (!hasTool(compiler)) return void console.log(`skipped: no ${compiler}`);
    const { found, key } = find(compiler, 'fake-php-zts', flags);
    expect(found.globals).toMatchObject({ kind: 'thread', ...expected });
    expect(found.globals).toMatchObject({ key });
  });

  it('with threads is refused where no pthread key is read', () => {
    const path = join(scratchFolder, 'php-without-key');
    const source = [
      'int execute_ex(void) { return 0; }',
      'long executor_globals_offset;',
      'void *tsrm_get_ls_cache(void) { return 0; }',
      'const char version[] = "X-Powered-By: PHP/8.2.99";',
    ].join('\n');
    execFileSync('gcc', ['-O2', ...SHARED, '-o', path, '-x', 'c', '-'], { input: source });
    expect(() => detectPhp(elfOf(path))).toThrow(
      'PHP 8.2.99, with threads (ZTS): no pthread key in tsrm_get_ls_cache',
    );
  });
});
