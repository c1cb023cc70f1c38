/**
 * `make && node dist/test/bench/large-symbols.js [--mebibytes 1024] [--addresses 100000]`: addresses spread over a large
 * program with DWARF, in no order, named in one run of each tool.
 */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { costOf, type Namer } from '../oracle/symbol-cost.ts';
import { sampleAddresses } from './compare-symbols.ts';
import { buildLargeProgram } from './large-program.ts';

const { values } = parseArgs({
  options: {
    mebibytes: { type: 'string', default: '1024' },
    addresses: { type: 'string', default: '100000' },
  },
});
/** Prime, so that every address has its turn. */
const STRIDE = 7919;
const TOOLS: readonly Namer[] = ['everyframe', 'addr2line', 'llvm-symbolizer'];

const path = buildLargeProgram(Number(values.mebibytes));
const count = Number(values.addresses);
const ascending = sampleAddresses(path, count).slice(0, count);
const addresses = ascending.map((_, i) => ascending[(i * STRIDE) % ascending.length]!);
console.log(`${addresses.length} addresses of ${path}, ${(statSync(path).size / 2 ** 20).toFixed(0)} MiB`);
for (const tool of TOOLS) {
  if (spawnSync(tool === 'everyframe' ? 'node' : tool, ['--version']).error) continue;
  const { seconds, cpuSeconds, mebibytes } = costOf(tool, path, addresses, 1);
  console.log(
    `${tool}: ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU time, ${mebibytes.toFixed(0)} MiB at most`,
  );
}
