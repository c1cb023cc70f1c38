import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import type { Check } from '../../agent/host/host-checks.ts';
import { checkBuild, formatFixes, formatJson, formatText } from './doctor.ts';

const OK: Check = { name: 'kernel', status: 'ok', message: '6.12.41' };
const LESS: Check = { name: 'bpf jit', status: 'degraded', message: 'off', fix: 'sysctl -w x=1' };
const FATAL: Check = { name: 'btf', status: 'fatal', message: 'missing', fix: 'boot another kernel' };

it('prints columns, fixes under what they fix, and a sentence that sums up', () => {
  expect(formatText([OK, LESS])).toBe(`\
ok        kernel   6.12.41
degraded  bpf jit  off
                   fix: sysctl -w x=1

everyframe can run here, with less: 1 degraded.
`);
  expect(formatText([OK])).toContain('\n\neveryframe can run here.\n');
  expect(formatText([LESS, FATAL])).toContain('\n\neveryframe cannot run here: 1 fatal.\n');
});

it('prints one JSON object a line', () => {
  expect(
    formatJson([OK, LESS])
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([OK, LESS]);
});

it('names what is not built', () => {
  const root = mkdtempSync(join(tmpdir(), 'everyframe-build-'));
  try {
    const built = [
      'everyframe.bpf.o',
      'everyframe-reader',
      'worker-launcher',
      'workers/worker.cjs',
      'otlp.js',
      'web/index.html',
    ];
    for (const file of built.map((name) => join('build', name))) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), '');
    }
    expect(checkBuild(root)).toEqual({
      name: 'build',
      status: 'fatal',
      message: `not built: build/everyframe.node missing in ${root}`,
      fix: 'npm run setup',
    });
    writeFileSync(join(root, 'build/everyframe.node'), '');
    expect(checkBuild(root).status).toBe('ok');
    // a release
    rmSync(join(root, 'build/otlp.js'));
    expect(checkBuild(root).message).toContain('build/otlp.js');
    mkdirSync(join(root, 'lib'));
    writeFileSync(join(root, 'lib/node'), '');
    expect(checkBuild(root).status).toBe('ok');
  } finally {
    rmSync(root, { recursive: true });
  }
});

it('prints what to do as a script that a shell reads', () => {
  const script = formatFixes([
    { name: 'a', status: 'ok', message: 'fine' },
    {
      name: 'kernel symbols',
      status: 'degraded',
      message: "hidden; they're addresses",
      fix: 'sudo sysctl -w kernel.kptr_restrict=1',
    },
    {
      name: 'open files',
      status: 'fatal',
      message: 'few',
      fix: 'ulimit -n 1024 (systemd: LimitNOFILE=1024)',
    },
    { name: 'btf', status: 'fatal', message: 'missing', fix: 'boot a kernel with it' },
  ]);
  execFileSync('sh', ['-n'], { input: script });
  expect(script.split('\n')).toEqual([
    "# degraded: kernel symbols: hidden; they're addresses",
    'sudo sysctl -w kernel.kptr_restrict=1',
    "echo 'kernel.kptr_restrict=1' | sudo tee -a /etc/sysctl.d/60-everyframe.conf",
    '# fatal: open files: few',
    'ulimit -n 1024',
    '#   or systemd: LimitNOFILE=1024',
    '# fatal: btf: missing',
    '#   boot a kernel with it',
    '',
  ]);
  expect(formatFixes([])).toBe('# nothing to do\n');
});
