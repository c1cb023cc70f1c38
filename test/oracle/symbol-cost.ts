/** Time and memory of naming addresses, in processes of their own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Cost {
  seconds: number;
  cpuSeconds: number;
  mebibytes: number;
}

const EVERYFRAME = new URL('../../../bin/everyframe', import.meta.url).pathname;

/** Arguments: a file for standard input, then the command. */
const MEASURE = `
import json, os, resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[2:], stdin=open(sys.argv[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
end, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([end - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
`;

export const NAMERS = ['everyframe', 'addr2line', 'llvm-symbolizer', 'blazecli'] as const;
export type Namer = (typeof NAMERS)[number];

/** What of everyframe's figures is the start of its runtime. */
export const costOfNode = (): Cost => measure(['node', '-e', '0'], '', 3);

/** With inlined calls and demangled names; addresses come as arguments or by standard input. */
function commandOf(namer: Namer, path: string, addresses: readonly string[]): string[] {
  switch (namer) {
    case 'everyframe':
      return [EVERYFRAME, 'show', 'symbol', '--json', path, ...(addresses.length > 1 ? ['-'] : addresses)];
    case 'addr2line':
      return ['addr2line', '-fiC', '-e', path];
    case 'llvm-symbolizer':
      return ['llvm-symbolizer', '--obj', path];
    case 'blazecli':
      return ['blazecli', 'symbolize', 'elf', '--path', path, ...addresses];
  }
}

/** The fastest of `runs` fresh processes. */
export function costOf(namer: Namer, path: string, addresses: readonly number[], runs: number): Cost {
  const texts = addresses.map((address) => `0x${address.toString(16)}`);
  return measure(commandOf(namer, path, texts), `${texts.join('\n')}\n`, runs);
}

function measure(command: string[], input: string, runs: number): Cost {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-cost-'));
  try {
    const file = join(folder, 'input');
    writeFileSync(file, input);
    const costs = Array.from({ length: runs }, () => {
      const text = execFileSync('python3', ['-c', MEASURE, file, ...command], { encoding: 'utf8' });
      const [seconds, cpuSeconds, mebibytes] = JSON.parse(text) as [number, number, number];
      return { seconds, cpuSeconds, mebibytes };
    });
    return costs.sort((a, b) => a.cpuSeconds - b.cpuSeconds)[0]!;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
