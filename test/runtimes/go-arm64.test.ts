/** Programs in Go for arm64: what is found in their files, on a machine of any processor. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { detectGo } from '../../agent/interpreters/go/detect-go.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { hasTool, scratchFolder } from '../support/fixtures.ts';
import { goEnvironment } from '../toolchains/go-releases.ts';

const skipped = hasTool('go') ? '' : 'go is not installed';
if (skipped) console.log(`skipped: ${skipped}`);

describe.skipIf(skipped)('Go for arm64', () => {
  it.each([
    ['as it is built', []],
    ['position-independent', ['-buildmode=pie']],
    ['stripped', ['-ldflags=-s -w']],
  ])('%s', (_, flags) => {
    const out = join(scratchFolder, 'arm64');
    const env = { ...goEnvironment('go'), GOARCH: 'arm64', CGO_ENABLED: '0' };
    execFileSync('go', ['build', ...flags, '-o', out, join(import.meta.dirname, 'go/labels.go')], { env });
    const found = detectGo(parseElf(bufferSource(readFileSync(out))))!;
    // without C the goroutine is in x28 alone
    expect(found).toMatchObject({ access: { kind: 'register' }, setsLabels: true });
    // the code agrees with the table of releases
    expect(found.layout).toEqual(detectGo(parseElf(bufferSource(readFileSync(buildHere()))))!.layout);
  });
});

function buildHere(): string {
  const out = join(scratchFolder, 'amd64');
  const env = { ...goEnvironment('go'), GOARCH: 'amd64' };
  execFileSync('go', ['build', '-o', out, join(import.meta.dirname, 'go/labels.go')], { env });
  return out;
}
