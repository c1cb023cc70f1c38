/**
 * Functions of JavaScript as V8 calls them with --perf-basic-prof or --perf-prof, such as `JS:~main file:///srv/page.html:4:14`:
 * what it is, how it was compiled, its name, and where it begins. V8's own code has other names.
 * https://github.com/v8/v8/blob/main/src/logging/log.cc
 */
import type { SymbolFrame } from '../symbols/source.ts';

/** Where the function begins; what ran of it is not said. */
export interface ScriptFunction extends Pick<SymbolFrame, 'file'> {
  function: string;
  startLine: number;
  startColumn: number;
}

const NAME = /^(?:JS|LazyCompile|Function|Script|Eval):[~^+*]?'?(.*?) ?([^ ]*):(\d{1,9}):(\d{1,9})$/s;
const ANONYMOUS = '<anonymous>';

/** Undefined for any other name. */
export function readScriptFunction(name: string): ScriptFunction | undefined {
  const [, called, file, line, column] = NAME.exec(name) ?? [];
  if (file === undefined) return undefined;
  return { function: called || ANONYMOUS, file, startLine: Number(line), startColumn: Number(column) };
}
