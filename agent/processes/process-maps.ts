/** Mappings of a process by address: /proc/PID/maps, proc(5). */
import type { Pid } from '../../common/base/brand.ts';
import type { ForeignFiles } from './foreign-files.ts';

export interface ProcessMapping {
  start: number;
  end: number;
  isReadable: boolean;
  isWritable: boolean;
  isExecutable: boolean;
  /** In the file. */
  offset: number;
  /** The kernel's number. */
  device: number;
  inode: bigint;
  /** As the process knows it; '' for memory that no file backs, and for the stack, the heap and the like. */
  path: string;
}

/** The kernel allows 65,530 a process unless told otherwise. */
const MAX_MAPPINGS = 131_072;
const MAX_BYTES = 16 << 20;
/** What memory that processes share is called: of memfd_create(), of mmap() and shmget(), and of large pages. */
const SHARED_MEMORY = /^\/(memfd:.*|dev\/zero|anon_hugepage|SYSV[0-9a-f]{8}) \(deleted\)$/;
const LINE = /^([0-9a-f]+)-([0-9a-f]+) (.)(.)(.). ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$/;

/** Of the process alone, or shared: with no file in any folder. */
export const isMemory = ({ path }: ProcessMapping): boolean => path === '' || SHARED_MEMORY.test(path);

/** In ascending order; none where the process is gone, or does not answer. */
export async function readMappings(pid: Pid, files: ForeignFiles): Promise<ProcessMapping[]> {
  const bytes = await files.readProcFile(pid, 'maps', MAX_BYTES);
  return typeof bytes === 'number' ? [] : parseMappings(bytes.toString('latin1'));
}

export function parseMappings(text: string): ProcessMapping[] {
  const mappings: ProcessMapping[] = [];
  for (const line of text.split('\n')) {
    const found = LINE.exec(line);
    if (!found || mappings.length >= MAX_MAPPINGS) continue;
    const [, start, end, readable, writable, executable, offset, major, minor, inode, path] = found;
    mappings.push({
      start: fromHex(start!),
      end: fromHex(end!),
      isReadable: readable === 'r',
      isWritable: writable === 'w',
      isExecutable: executable === 'x',
      offset: fromHex(offset!),
      device: fromHex(major!) * 2 ** 20 + fromHex(minor!),
      inode: BigInt(inode!),
      path: path!.startsWith('/') ? path! : '',
    });
  }
  return mappings;
}

const fromHex = (text: string): number => Number.parseInt(text, 16);
