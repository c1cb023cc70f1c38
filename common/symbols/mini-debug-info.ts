/**
 * MiniDebugInfo: section .gnu_debugdata of a stripped file holds an ELF file, compressed with xz, whose .symtab has
 * the functions that .dynsym lacks. Fedora and its kin put it into every program. Described in the manual of GDB,
 * "MiniDebugInfo".
 */

import { bufferSource, OutOfBounds } from '../base/byte-source.ts';
import { ElfError, type ElfFile, parseElf } from '../elf/elf.ts';

export interface MiniDebugInfoLimits {
  compressedBytes: number;
  bytes: number;
  /** Symbol tables are compressed to a third or a tenth; what claims far more is a bomb. */
  ratio: number;
}

export const DEFAULT_LIMITS: MiniDebugInfoLimits = { compressedBytes: 8 << 20, bytes: 32 << 20, ratio: 100 };

/** Undefined where the file has none. Throws ElfError where it is damaged or exceeds a limit. */
export async function readMiniDebugInfo(
  elf: ElfFile,
  limits: MiniDebugInfoLimits = DEFAULT_LIMITS,
): Promise<ElfFile | undefined> {
  const section = elf.section('.gnu_debugdata');
  if (!section || section.size === 0) return undefined;
  try {
    const compressed = elf.sectionData(section, limits.compressedBytes);
    const maxBytes = Math.min(limits.bytes, compressed.length * limits.ratio);
    return parseElf(bufferSource(await decompress(compressed, maxBytes)));
  } catch (error) {
    if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    throw new ElfError(`section .gnu_debugdata: ${error.message}`);
  }
}

async function decompress(compressed: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  // loaded where it is needed: it brings Node's web streams along
  const { default: xz } = await import('xz-decompress');
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = new xz.XzReadableStream(inOneChunk(compressed)).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      // what was decompressed up to here is dropped, and the decoder's memory with it
      if (size > maxBytes) throw new ElfError(`it has more than ${maxBytes} bytes when decompressed`);
      chunks.push(value);
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    if (error instanceof ElfError) throw error;
    throw new ElfError(`it cannot be decompressed: ${(error as Error).message}`);
  }
  return Buffer.concat(chunks, size);
}

/** What ends without a chunk makes the decoder fail; it is given one, if an empty one. */
function inOneChunk(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}
