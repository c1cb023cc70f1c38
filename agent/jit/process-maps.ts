/** What a process has mapped, by address: /proc/PID/maps, proc(5). */
import { readFile } from 'node:fs/promises';

export interface ProcessMapping {
  start: number;
  end: number;
  isReadable: boolean;
  isExecutable: boolean;
  /** In the file. */
  offset: number;
  /** As the process knows it; '' for memory that no file backs, and for the stack, the heap and the like. */
  path: string;
}

/** The kernel allows 65,530 a process unless told otherwise. */
const MAX_MAPPINGS = 131_072;
const LINE = /^([0-9a-f]+)-([0-9a-f]+) (.)..(?:.) ([0-9a-f]+) \S+ \d+ *(.*)$/;
const EXECUTABLE = /^\S+ ..x/;

/** In ascending order. @throws where the process is gone */
export async function readMappings(pid: number, proc: string): Promise<ProcessMapping[]> {
  return parseMappings(await readFile(`${proc}/${pid}/maps`, 'latin1'));
}

export function parseMappings(text: string): ProcessMapping[] {
  const mappings: ProcessMapping[] = [];
  for (const line of text.split('\n')) {
    const found = LINE.exec(line);
    if (!found || mappings.length >= MAX_MAPPINGS) continue;
    const [, start, end, readable, offset, path] = found;
    mappings.push({
      start: Number.parseInt(start!, 16),
      end: Number.parseInt(end!, 16),
      isReadable: readable === 'r',
      isExecutable: EXECUTABLE.test(line),
      offset: Number.parseInt(offset!, 16),
      path: path!.startsWith('/') ? path! : '',
    });
  }
  return mappings;
}
