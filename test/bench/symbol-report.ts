/** `node dist/test/bench/symbol-report.js COUNT FILE…`: a row of the table in docs/symbolizer.md for each file. */
import { compareSymbols, type Oracle, sampleAddresses } from './compare-symbols.ts';

const [count = '10000', ...files] = process.argv.slice(2);
const shown = Number(process.env['SHOW'] ?? 0);
console.log(
  'file | oracle | addresses | same | stubs | borrowed | levels | name | file | line | only we | only oracle',
);
for (const file of files) {
  const addresses = sampleAddresses(file, Number(count));
  for (const oracle of ['addr2line', 'llvm-symbolizer'] as Oracle[]) {
    const { same, stubs, borrowed, onlyWe, onlyOracle, differences } = await compareSymbols(
      oracle,
      file,
      addresses,
    );
    const kinds = (['levels', 'name', 'file', 'line'] as const).map(
      (kind) => differences.filter((difference) => difference.kind === kind).length,
    );
    console.log(
      [file, oracle, addresses.length, same, stubs, borrowed, ...kinds, onlyWe, onlyOracle].join(' | '),
    );
    for (const difference of differences.slice(0, shown)) console.log(JSON.stringify(difference));
  }
}
