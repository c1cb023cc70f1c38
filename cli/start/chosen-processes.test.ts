import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { collectPid, requireProcess } from './chosen-processes.ts';

describe('-p', () => {
  it.each(['0', '-1', '1.5', '1e3', '', 'x', '4194305', '0x10', '12,', '12,x'])('refuses %j', (text) => {
    expect(() => collectPid(text, undefined)).toThrow('not a valid PID');
  });

  it('takes several', () => {
    expect(collectPid('12', collectPid('4194304', undefined))).toEqual([4194304, 12]);
    expect(collectPid('12,34', undefined)).toEqual([12, 34]);
    expect(collectPid('12\n34\n', undefined)).toEqual([12, 34]);
  });

  it('leads from a name to its PIDs', () => {
    expect(() => collectPid('nginx', undefined)).toThrow('not a valid PID: -p $(pgrep -d, nginx)?');
  });

  it('says that a process is gone', async () => {
    const child = spawn('true');
    await new Promise((resolve) => child.once('exit', resolve));
    expect(() => requireProcess(toPid(child.pid!))).toThrow('there is no such process');
  });

  it("leads from a thread's ID to its process", () => {
    const thread = readdirSync('/proc/self/task')
      .map(Number)
      .find((tid) => tid !== process.pid)!;
    expect(() => requireProcess(toPid(thread))).toThrow(
      `a thread of process ${process.pid}: give -p ${process.pid}`,
    );
    requireProcess(toPid(process.pid));
  });
});
