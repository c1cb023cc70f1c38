/**
 * How a thread finds its Python thread state, read from the machine code of the functions that do it. There are
 * two notions, and both are needed:
 *
 *   the bound one    (PyGILState_GetThisThreadState) belongs to the thread for its whole life. 3.6 to 3.14 keep it
 *                    in a pthread key, whose number stands in a variable; 3.15 in a thread-local variable.
 *   the current one  (_PyThreadState_GetCurrent) is the one that runs now: null while the thread has released the
 *                    interpreter lock, and another one than the bound one in a subinterpreter. A thread-local
 *                    variable from 3.12 on; earlier versions have one for the whole process, and it has to be asked
 *                    which thread it belongs to.
 *
 * Both functions are a few instructions long; these are the shapes that GCC and clang give them on amd64, for programs
 * and for shared libraries. arm64: thread-access-arm64.ts.
 */

export type ThreadAccess =
  /** The number of a pthread key stands at this address. */
  | { kind: 'key'; address: number }
  /** A thread-local variable this far from the thread pointer. */
  | { kind: 'offset'; offset: number }
  /** A variable of the whole process. */
  | { kind: 'global'; address: number }
  /** A thread-local variable of a shared library: module ID and offset stand at `got`, to which `add` is added. */
  | { kind: 'module'; got: number; add: number }
  /** The same on arm64, where the second word at `got` is its distance from the thread pointer, or leads to both numbers. */
  | { kind: 'descriptor'; got: number; add: number };

export interface FunctionCode {
  address: number;
  bytes: Uint8Array;
}

const MAX_BYTES = 64;

/** `runtime` is the address of _PyRuntime. Undefined where the code has none of the known shapes. */
export function decodeBoundThread(code: FunctionCode, runtime: number): ThreadAccess | undefined {
  const tls = decodeThreadLocal(code);
  if (tls) return tls;
  const { view, end } = viewOf(code);
  for (let i = 0; i + 7 <= end; i++) {
    const [a, b, c] = [view.getUint8(i), view.getUint8(i + 1), view.getUint8(i + 2)];
    // mov edi, [rip + d]: the key itself
    if (a === 0x8b && b === 0x3d)
      return { kind: 'key', address: code.address + i + 6 + view.getInt32(i + 2, true) };
    // lea rdi|rbx, [rip + d]: Py_tss_t {int is_initialized; pthread_key_t key}
    if (a === 0x48 && b === 0x8d && (c === 0x3d || c === 0x1d))
      return { kind: 'key', address: code.address + i + 7 + view.getInt32(i + 3, true) + 4 };
    // lea reg, [reg + d] after _PyRuntime was loaded from the global offset table
    if (a === 0x48 && b === 0x8d && c >= 0x80 && c < 0xc0)
      return { kind: 'key', address: runtime + view.getInt32(i + 3, true) + 4 };
    // mov edi, [reg + d], the same with the key's own offset
    if (a === 0x8b && b >= 0xb8 && b < 0xc0)
      return { kind: 'key', address: runtime + view.getInt32(i + 2, true) };
    // mov edi, address
    if (a === 0xbf) return { kind: 'key', address: view.getUint32(i + 1, true) + 4 };
  }
  return undefined;
}

/** `variable` is the address of _PyRuntime, in 3.6 that of _PyThreadState_Current. */
export function decodeCurrentThread(code: FunctionCode, variable: number): ThreadAccess | undefined {
  return decodeThreadLocal(code) ?? decodeGlobal(code, variable);
}

/**
 * mov rax, [rip + d]; ret. Or by way of the variable's address, from the global offset table or by its distance:
 * mov|lea rax, [rip + d]; mov rax, [rax + d].
 */
function decodeGlobal(code: FunctionCode, variable: number): ThreadAccess | undefined {
  const { view, end } = viewOf(code);
  const ENDBR64 = 0xfa1e0ff3;
  const at = end >= 4 && view.getUint32(0, true) === ENDBR64 ? 4 : 0;
  if (at + 8 > end) return undefined;
  const opcode = view.getUint32(at, true) & 0xffffff;
  const isLoad = opcode === 0x058b48;
  if (!isLoad && opcode !== 0x058d48) return undefined;
  const target = code.address + at + 7 + view.getInt32(at + 3, true);
  if (isLoad && view.getUint8(at + 7) === 0xc3) return { kind: 'global', address: target };
  const base = isLoad ? variable : target;
  if (at + 10 > end || view.getUint16(at + 7, true) !== 0x8b48 || base === 0) return undefined;
  const modrm = view.getUint8(at + 9);
  if (modrm !== 0 && modrm !== 0x40 && modrm !== 0x80) return undefined;
  return { kind: 'global', address: base + loadOffset(view, at + 7, end) };
}

function decodeThreadLocal(code: FunctionCode): ThreadAccess | undefined {
  const { view, end } = viewOf(code);
  for (let i = 0; i + 9 <= end; i++) {
    // mov rax, fs:[d]
    if (view.getUint32(i, true) === 0x048b4864 && view.getUint8(i + 4) === 0x25)
      return { kind: 'offset', offset: view.getInt32(i + 5, true) };
    // lea rdi, [rip + d]; call __tls_get_addr; with 66 in front where the variable has its own pair of words
    if (view.getUint16(i, true) !== 0x8d48 || view.getUint8(i + 2) !== 0x3d) continue;
    const call = findCall(view, i + 7, end);
    if (call < 0) return undefined;
    const got = code.address + i + 7 + view.getInt32(i + 3, true);
    return { kind: 'module', got, add: loadOffset(view, call + 5, end) };
  }
  return undefined;
}

/** A call that directly follows, possibly padded by prefixes. */
function findCall(view: DataView, from: number, end: number): number {
  for (let i = from; i < from + 4 && i + 5 <= end; i++) {
    if (view.getUint8(i) === 0xe8) return i;
    if (view.getUint8(i) !== 0x66 && view.getUint8(i) !== 0x48) return -1;
  }
  return -1;
}

/** mov rax, [rax + d] after the call: the displacement, 0 for mov rax, [rax]. */
function loadOffset(view: DataView, at: number, end: number): number {
  if (at + 4 > end || view.getUint16(at, true) !== 0x8b48) return 0;
  const modrm = view.getUint8(at + 2);
  if (modrm === 0x40) return view.getInt8(at + 3);
  if (modrm === 0x80 && at + 7 <= end) return view.getInt32(at + 3, true);
  return 0;
}

function viewOf({ bytes }: FunctionCode): { view: DataView; end: number } {
  return {
    view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    end: Math.min(bytes.length, MAX_BYTES),
  };
}
