/** CPython 3.6 and later: docs/interpreters/python.md. */

import { FrameKind, RUNTIME_MAPS, Runtime } from '../../records/records.gen.ts';
import type { NameCache, RuntimePlugin } from '../contract.ts';
import { type CodeObject, PythonProcess, placeOf, readCodeObject } from './code-object.ts';
import { detectPython } from './detect-python.ts';
import { encodePython } from './encode.ts';
import type { PythonLayout } from './layout.ts';

interface Facts {
  minor: number;
  layout: PythonLayout;
}

const ENTRY_BYTES = 256;
const sizeOf = ({ name, file, lineTable }: CodeObject): number =>
  ENTRY_BYTES + 2 * (name.length + file.length) + lineTable.length;

/** A code object that was read, and which one it was. */
interface Known {
  cookie: number;
  code: CodeObject;
}

/** No code object is there. */
const PROCESS = 0;

function processOf(cache: NameCache): PythonProcess {
  const known = (cache.get(PROCESS) as PythonProcess | undefined) ?? new PythonProcess();
  cache.set(PROCESS, known);
  return known;
}

export const python: RuntimePlugin = {
  name: 'cpython',
  fileName: /^(lib)?python\d/,
  id: Runtime.PYTHON,
  map: RUNTIME_MAPS.PYTHON,
  frameKind: FrameKind.PYTHON,
  frameType: 'cpython',
  detect(elf) {
    const found = detectPython(elf);
    if (!found) return undefined;
    const { minor, layout, version, isFreeThreaded } = found;
    return {
      runtime: 'cpython',
      version: isFreeThreaded ? `${version}t` : version,
      facts: { minor, layout } satisfies Facts,
      entry: encodePython(found),
    };
  },
  /** Words: address of the code object; cookie (low) and byte offset of the instruction (high). */
  nameFrame({ operand, low, high }, facts, memory, cache) {
    let known = operand === PROCESS ? undefined : (cache.get(operand) as Known | undefined);
    if (known?.cookie !== low) {
      const code = readCodeObject(memory, facts as Facts, operand, low, processOf(cache));
      if (typeof code === 'string') return code;
      cache.bytes += sizeOf(code) - (known ? sizeOf(known.code) : 0);
      known = { cookie: low, code };
      cache.set(operand, known);
    }
    const { code } = known;
    return { name: code.name, file: code.file, startLine: code.firstLine, ...placeOf(code, high | 0) };
  },
};
