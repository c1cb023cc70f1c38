/**
 * Where LuaJIT 2.1 keeps what a frame's name needs: lj_obj.h, with pointers of 64 bits to collected objects (GC64), and of 32. Offsets
 * in bytes; but for strings they are the same in all of 2.1.
 */
export interface LuajitLayout {
  pointerBytes: 4 | 8;
  /** GCproto. */
  type: number;
  instructions: number;
  constants: number;
  objects: number;
  size: number;
  upvalues: number;
  chunk: number;
  firstLine: number;
  lines: number;
  lineInfo: number;
  upvalueNames: number;
  variables: number;
  protoBytes: number;
  /** GCstr: the length, and the text with a NUL behind it. It got a number in 2020; of both the one that fits is meant. */
  strings: readonly { length: number; text: number }[];
}

export const GC64: LuajitLayout = {
  pointerBytes: 8,
  type: 9,
  instructions: 0x0c,
  constants: 0x20,
  objects: 0x30,
  size: 0x38,
  upvalues: 0x3c,
  chunk: 0x40,
  firstLine: 0x48,
  lines: 0x4c,
  lineInfo: 0x50,
  upvalueNames: 0x58,
  variables: 0x60,
  protoBytes: 0x68,
  strings: [
    { length: 0x14, text: 0x18 },
    { length: 0x10, text: 0x18 },
  ],
};

export const GC32: LuajitLayout = {
  pointerBytes: 4,
  type: 5,
  instructions: 0x08,
  constants: 0x10,
  objects: 0x18,
  size: 0x20,
  upvalues: 0x24,
  chunk: 0x28,
  firstLine: 0x2c,
  lines: 0x30,
  lineInfo: 0x34,
  upvalueNames: 0x38,
  variables: 0x3c,
  protoBytes: 0x40,
  strings: [
    { length: 0x10, text: 0x14 },
    { length: 0x0c, text: 0x10 },
  ],
};

/** Types of collected objects (~itype). */
export const TYPE = { string: 4, proto: 7 } as const;
