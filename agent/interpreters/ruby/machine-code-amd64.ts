/** machine-code.ts for amd64 (encodings: Intel SDM volume 2; thread-local variables: "ELF Handling For Thread-Local Storage", 4.1 and 4.2). */
import {
  type Branch,
  type Code,
  type CollectorPlace,
  type ContextAccess,
  type Decoder,
  mayBeSpace,
} from './machine-code.ts';

const viewOf = ({ bytes }: Code): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const SEQUENCE_BYTES = 24;

function firstThreadLocal({ address, bytes }: Code): ContextAccess | undefined {
  // what a sequence takes may be more than is left
  const code = { address, bytes: Buffer.concat([bytes, new Uint8Array(SEQUENCE_BYTES)]) };
  const view = viewOf(code);
  for (let at = 0; at < bytes.length; at++) {
    const found = moduleAccess(code, view, at) ?? offsetAccess(view, at);
    if (found) return found;
  }
  return undefined;
}

/** lea slot(%rip),%rdi; call __tls_get_addr; mov add(%rax),%reg */
function moduleAccess({ address }: Code, view: DataView, at: number): ContextAccess | undefined {
  if (view.getUint8(at) !== 0x48 || view.getUint16(at + 1) !== 0x8d3d) return undefined;
  const slot = address + at + 7 + view.getInt32(at + 3, true);
  const behind = behindCall(view, at + 7);
  if (behind === undefined) return undefined;
  const [rex, opcode, modrm] = [view.getUint8(behind), view.getUint8(behind + 1), view.getUint8(behind + 2)];
  if ((rex & 0xfb) !== 0x48 || opcode !== 0x8b || (modrm & 7) !== 0) return undefined;
  const add = [0, view.getInt8(behind + 3), view.getInt32(behind + 3, true)][modrm >> 6];
  return add === undefined ? undefined : { kind: 'module', slot, add };
}

/** A call, with the prefixes by which linkers fill such a sequence up. */
function behindCall(view: DataView, at: number): number | undefined {
  let from = at;
  while (from < at + 3 && [0x66, 0x48].includes(view.getUint8(from))) from++;
  if (view.getUint8(from) === 0xe8) return from + 5;
  return view.getUint16(from) === 0xff15 ? from + 6 : undefined;
}

/** mov %fs:offset,%reg; what stands at 0x28 is the canary of the stack. */
function offsetAccess(view: DataView, at: number): ContextAccess | undefined {
  const isMove = view.getUint8(at) === 0x64 && (view.getUint8(at + 1) & 0xfb) === 0x48;
  if (!isMove || view.getUint8(at + 2) !== 0x8b) return undefined;
  if ((view.getUint8(at + 3) & 0xc7) !== 0x04 || view.getUint8(at + 4) !== 0x25) return undefined;
  const offset = view.getInt32(at + 5, true);
  return offset < 0 ? { kind: 'offset', offset } : undefined;
}

function targetsOf(code: Code, branches: readonly Branch[]): number[] {
  const view = viewOf(code);
  const opcodes: readonly number[] = branches.map((branch) => (branch === 'call' ? 0xe8 : 0xe9));
  const targets: number[] = [];
  const end = code.address + view.byteLength;
  for (let at = 0; at + 5 <= view.byteLength; at++) {
    if (!opcodes.includes(view.getUint8(at))) continue;
    const target = code.address + at + 5 + view.getInt32(at + 1, true);
    if (target < code.address || target >= end) targets.push(target);
  }
  return targets;
}

/** The address that a 32-bit register is compared with: cmp place(%rip),%reg and cmp %reg,place(%rip). */
function firstCompared(code: Code): number | undefined {
  const view = viewOf(code);
  for (let at = 0; at + 6 <= view.byteLength; at++) {
    const [opcode, modrm] = [view.getUint8(at), view.getUint8(at + 1)];
    if ((opcode === 0x39 || opcode === 0x3b) && (modrm & 0xc7) === 0x05)
      return code.address + at + 6 + view.getInt32(at + 2, true);
  }
  return undefined;
}

/** What `rb_during_gc` reads: mov space(%reg),%other; then movzbl flags(%other) or mov flags(%other). */
function readsCollector(code: Code): CollectorPlace | undefined {
  const view = viewOf(code);
  for (let at = 0; at + 11 <= view.byteLength; at++) {
    const modrm = view.getUint8(at + 2);
    const isMove = view.getUint16(at) === 0x488b && modrm >> 6 === 2 && (modrm & 7) !== 4;
    if (!isMove) continue;
    const space = view.getInt32(at + 3, true);
    // without a prefix, or the two bytes of movzbl
    const behind = view.getUint8(at + 7) === 0x8b ? at + 8 : view.getUint16(at + 7) === 0x0fb6 ? at + 9 : -1;
    if (behind < 0 || !mayBeSpace(space)) continue;
    if ((view.getUint8(behind) & 0xc7) === (0x40 | ((modrm >> 3) & 7)))
      return { space, flags: view.getUint8(behind + 1) };
  }
  return undefined;
}

export const amd64: Decoder = { firstThreadLocal, targetsOf, firstCompared, readsCollector };
