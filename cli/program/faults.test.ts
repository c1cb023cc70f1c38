import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { describeFault } from './faults.ts';

const fault = (code: string): Error => Object.assign(new Error(`${code}: it failed, open '/x'`), { code });

describe('a fault', () => {
  it.each([
    ['EMFILE', 'ulimit -n'],
    ['ENOSPC', 'make room'],
    ['EIO', 'dmesg'],
    ['EROFS', 'another place'],
  ])('of the machine is a sentence with what to do: %s', (code, advice) => {
    const text = describeFault(fault(code));
    expect(text).toContain(`${code}: it failed, open '/x': `);
    expect(text).toContain(advice);
    expect(text).not.toContain('\n');
  });

  it('of ours asks to be reported, with its stack', () => {
    expect(describeFault(new TypeError('x is not a function'))).toMatch(
      /report this:\nTypeError: x is not.*\n +at /,
    );
    expect(describeFault('a text that was thrown')).toContain('a text that was thrown');
    expect(describeFault(undefined)).toContain('undefined');
  });

  it('ends with an exit code of its own, in plain text', () => {
    const built = new URL('../../dist/cli/program/faults.js', import.meta.url).href;
    const script = `import { endOnFaults } from ${JSON.stringify(built)};
      endOnFaults((text) => console.error(text));
      process.on('exit', () => console.error('left the screen'));
      setTimeout(() => { throw Object.assign(new Error('too many'), { code: 'EMFILE' }); });`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/left the screen\ntoo many: this process may not open more files/);
    expect(status).toBe(70);
  });
});
