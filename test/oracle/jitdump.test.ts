/** V8's own jitdump, read here and by perf: the same name for each address that perf sampled. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CHUNK_BYTES } from '../../common/jit/jit-code.ts';
import { JitDump } from '../../common/jit/jitdump.ts';
import { hasTool, missingRights } from '../support/fixtures.ts';

const PROGRAM = `
  function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s; }
  const mid = (n) => leaf(n) + [n, n / 2].map(leaf).sort((a, b) => a - b)[0];
  const end = Date.now() + 1500;
  while (Date.now() < end) mid(1000);
`;

const why = missingRights || (hasTool('perf') ? '' : 'perf is not installed');
if (why) console.log(`skipped: ${why}`);

function readDump(file: Buffer): JitDump {
  const dump = new JitDump(1_000_000);
  let offset = 0;
  while (offset >= 0 && offset < file.length) {
    const next = dump.push(file.subarray(offset, offset + CHUNK_BYTES), offset);
    if (next === offset) break;
    offset = next;
  }
  return dump;
}

async function nameIn(dump: JitDump, file: Buffer, address: number): Promise<string> {
  const place = dump.find(address);
  if (place === undefined) return 'nothing';
  const name = await dump.describe(place, address, async (at, length) => file.subarray(at, at + length));
  return typeof name === 'object' ? name.function : name;
}

describe.skipIf(why)('V8’s jitdump', () => {
  it('has the names that perf inject gives', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'everyframe-jitdump-'));
    const perf = (...args: string[]): string =>
      execFileSync('perf', args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 << 20, stdio: 'pipe' });
    try {
      await writeFile(join(folder, 'program.cjs'), PROGRAM);
      const record = ['record', '-q', '-k', 'mono', '-e', 'cpu-clock', '-o', 'data'];
      perf(...record, process.execPath, '--perf-prof', '--no-logfile-per-isolate', 'program.cjs');
      perf('inject', '--jit', '-i', 'data', '-o', 'injected');
      const samples = perf('script', '-i', 'injected', '-F', 'ip,sym,dso').matchAll(
        /^ *([0-9a-f]+) (.*) \(.*jitted-.*\.so\)$/gm,
      );
      const expected = new Map([...samples].map(([, ip, name]) => [Number.parseInt(ip!, 16), name!]));
      const file = readFileSync(
        join(folder, (await readdir(folder)).find((name) => /^jit-\d+\.dump$/.test(name))!),
      );
      const dump = readDump(file);
      expect(dump.stats).toMatchObject({ malformed: 0, dropped: 0 });
      expect(dump.stats.functions).toBeGreaterThan(1000);
      expect([...expected.values()].filter((name) => /JS:.*leaf/.test(name))).not.toEqual([]);
      const differing: string[] = [];
      for (const [ip, name] of expected) {
        const ours = await nameIn(dump, file, ip);
        if (ours !== name.trim()) differing.push(`${ip.toString(16)}: ${ours}, perf says ${name}`);
      }
      console.log(`${expected.size} addresses, ${differing.length} differ`);
      expect(differing).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
