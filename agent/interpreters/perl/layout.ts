/**
 * Where Perl keeps what a frame needs: intrpvar.h, cop.h, cv.h, gv.h, hv.h and op.h of each version. Offsets in bytes; read from
 * the headers of 5.32, 5.36, 5.40 and 5.42 by a compiler, of the others from their sources.
 */
export interface PerlLayout {
  /** The interpreter's PL_curcop and PL_curstackinfo, in builds that have an interpreter. */
  statement: number;
  stackInfo: number;
  /** PERL_CONTEXT: its size, the function that it calls, the file that it requires. */
  contextBytes: number;
  contextFunction: number;
  contextName: number;
  /** PERL_SI.si_type. */
  stackType: number;
  /** A package's name stands in the body of its hash; else behind its array. */
  hasNameInBody: boolean;
}

/** The interpreter's PL_op, in all versions. */
export const OPERATION = 8;
/** sv.h: an SV's head: its body, its flags, and what they say the next word is. */
export const SV = { body: 0, flags: 12, value: 16, bytes: 24, typeMask: 0x1f } as const;
export const TYPE = { GV: 9, HV: 12, CV: 13 } as const;
/** SVpgv_GP: the symbol has a value; SVf_OOK: the hash has a name, or an iterator. */
export const FLAG = { hasGp: 0x8000, hasAux: 0x0200_0000 } as const;
/** Bodies and what they lead to: XPVGV, GP, XPVHV, struct xpvhv_aux, XPVCV, HEK. */
export const XPVGV = { name: 0x20, stash: 0x28, bytes: 0x30 } as const;
export const GP_EGV = 0x38;
export const XPVHV = { max: 0x18, bytes: 0x20 } as const;
export const AUX = { name: 0, count: 0x1c, bytes: 0x20 } as const;
export const XPVCV = { stash: 0x20, name: 0x38, bytes: 0x60 } as const;
export const HEK = { length: 4, text: 8 } as const;
/** OP and COP. */
export const OP = {
  sibling: 8,
  function: 16,
  type: 32,
  flags: 34,
  first: 40,
  line: 36,
  file: 48,
  bytes: 56,
} as const;
export const OP_FLAG = { moreSiblings: 1 << 14, typeMask: 0x1ff, kids: 4 } as const;

const V28: PerlLayout = {
  statement: 0xe0,
  stackInfo: 0xf0,
  contextBytes: 0x60,
  contextFunction: 0x40,
  contextName: 0x38,
  stackType: 0x28,
  hasNameInBody: false,
};
const V32: PerlLayout = {
  ...V28,
  contextBytes: 0x68,
  contextFunction: 0x48,
  contextName: 0x40,
  stackType: 0x2c,
};
const V34: PerlLayout = { ...V32, statement: 0xd0, stackInfo: 0xe0 };
const V36: PerlLayout = { ...V34, hasNameInBody: true };

/** That of the newest version whose layout is known, for later ones: what is read is checked. Undefined where it is too old. */
export function layoutOf(version: number): PerlLayout | undefined {
  if (version >= 36) return V36;
  if (version >= 34) return V34;
  if (version >= 32) return V32;
  return version >= 28 ? V28 : undefined;
}
