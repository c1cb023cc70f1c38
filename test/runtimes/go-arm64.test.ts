/** Programs in Go for arm64: what is found in their files, on a machine of any processor. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectGo, type GoBinary } from '../../agent/interpreters/go/detect-go.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { hasTool, scratchFolder } from '../support/fixtures.ts';
import { goEnvironment } from '../toolchains/go-releases.ts';

const skipped = hasTool('go') ? '' : 'go is not installed';
if (skipped) console.log(`skipped: ${skipped}`);

const COMPILER = 'aarch64-linux-gnu-gcc';
const SOURCE = join(import.meta.dirname, 'go/labels.go');

function detect(arch: string, flags: readonly string[], environment: NodeJS.ProcessEnv): GoBinary {
  const out = join(scratchFolder, `labels-${arch}`);
  const env = { ...goEnvironment('go'), GOARCH: arch, ...environment };
  execFileSync('go', ['build', ...flags, '-o', out, SOURCE], { env });
  return detectGo(parseElf(bufferSource(readFileSync(out))))!;
}

describe.skipIf(skipped)('Go for arm64', () => {
  const { layout } = skipped ? {} : detect('amd64', [], {});

  it.each([
    ['as it is built', []],
    ['position-independent', ['-buildmode=pie']],
    ['stripped', ['-ldflags=-s -w']],
  ])('%s has its goroutine in a register, and the code agrees with the table of releases', (_, flags) => {
    const found = detect('arm64', flags, { CGO_ENABLED: '0' });
    expect(found).toMatchObject({ access: { kind: 'register' }, setsLabels: true, layout });
  });

  it.skipIf(!hasTool(COMPILER)).each([
    ['as it is built', [], { kind: 'threadLocal', offset: 16 }],
    ['position-independent', ['-buildmode=pie'], { kind: 'threadLocal', offset: 16 }],
    ['as a library', ['-buildmode=c-shared'], { kind: 'slot' }],
  ])('with C, %s, has it in thread-local storage', (_, flags, access) => {
    // its linker is then GNU's
    const linked = [...flags, '-ldflags=-linkmode=external'];
    const found = detect('arm64', linked, { CGO_ENABLED: '1', CC: COMPILER });
    expect(found).toMatchObject({ access, setsLabels: true, layout });
  });
});
