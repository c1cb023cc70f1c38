/** thread-access.ts for arm64. */
import { follow, threadLocal, type Value } from '../arm64-code.ts';
import type { FunctionCode, ThreadAccess } from './thread-access.ts';

/** `runtime` is the address of _PyRuntime. Undefined where it can't be followed. */
export function decodeBoundThread(code: FunctionCode, runtime: number): ThreadAccess | undefined {
  return follow<ThreadAccess>(code, (value, end) => {
    if (end === 'return') return threadLocal(value);
    const address = value && addressOf(value, runtime);
    // the key itself, or Py_tss_t {int is_initialized; pthread_key_t key}
    return address === undefined
      ? undefined
      : { kind: 'key', address: value!.isLoaded ? address : address + 4 };
  });
}

/** `variable` is the address of _PyRuntime, in 3.6 that of _PyThreadState_Current. */
export function decodeCurrentThread(code: FunctionCode, variable: number): ThreadAccess | undefined {
  return follow<ThreadAccess>(code, (value, end) => {
    if (end === 'call' || !value?.isLoaded) return undefined;
    const address = addressOf(value, variable);
    return address === undefined ? threadLocal(value) : { kind: 'global', address };
  });
}

/** What the global offset table leads to is taken to be `pointed`. */
function addressOf({ base, offset }: Value, pointed: number): number | undefined {
  if (base === 'file') return offset;
  return base === 'pointer' && pointed > 0 ? pointed + offset : undefined;
}
