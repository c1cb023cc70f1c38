/** What `show symbol` prints for an address. */
import { basename } from 'node:path';
import { printable } from '../../common/base/printable.ts';
import type { SymbolFrame } from '../../common/symbols/source.ts';

/** `path`: of the file, for an address that has no name. */
export const symbolText = (
  address: number,
  frames: readonly SymbolFrame[],
  { json, path }: { json: boolean; path: string },
): string => (json ? asJson(address, frames) : asText(address, frames, path));

const hex = (address: number): string => `0x${address.toString(16)}`;

function asJson(address: number, frames: readonly SymbolFrame[]): string {
  const shown = frames.map(({ function: name, file, line, column, inlined }) => ({
    function: name,
    file,
    line,
    column,
    inlined,
  }));
  return `${JSON.stringify({ address: hex(address), frames: shown })}\n`;
}

function asText(address: number, frames: readonly SymbolFrame[], path: string): string {
  const nameless = `${printable(basename(path))}+${hex(address)}`;
  const texts = frames.map(({ function: name, file, line, column, inlined }) => {
    const place = file && `${printable(file)}${line ? `:${line}${column ? `:${column}` : ''}` : ''}`;
    return [printable(name) || nameless, place && `at ${place}`, inlined && '(inlined)']
      .filter(Boolean)
      .join(' ');
  });
  return `${hex(address).padEnd(18)} ${texts.join(`\n${' '.repeat(19)}`) || nameless}\n`;
}
