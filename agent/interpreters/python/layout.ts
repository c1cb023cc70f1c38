/**
 * Where CPython keeps what a profiler needs, in bytes from the start of each struct.
 *
 * From 3.13 on the interpreter says it itself (debug-offsets.ts). For older versions it is written here, from the
 * headers of the releases: Include/frameobject.h and Include/code.h (3.6 to 3.8), Include/cpython/ (3.9 on),
 * Include/internal/pycore_frame.h (3.11 on). Release builds of amd64 and arm64 share one layout; a debug build
 * (Py_TRACE_REFS before 3.13) has another one, which the type check of every code object finds out.
 */

export interface PythonLayout {
  /** The frame, or with `isFrameInCframe` the cframe that leads to it. */
  threadFrame: number;
  /** The thread's pthread_self(). */
  threadId: number;
  /** The next thread of its interpreter. */
  threadNext: number;
  /** 3.15 and later: a frame that runs nothing, the last one of the list; 0: there is none. */
  threadBaseFrame: number;
  /** In _PyRuntime, the newest interpreter; 0: unknown. */
  runtimeInterpreters: number;
  /** The next older interpreter. */
  interpreterNext: number;
  interpreterThreads: number;
  /** 3.10 to 3.12: the innermost cframe, a local variable of each run of the interpreter loop; 0: there is none. */
  threadCframe: number;
  cframePrevious: number;
  /** 3.11 and 3.12: the frame is found through the cframe. */
  isFrameInCframe: boolean;
  cframeFrame: number;
  framePrevious: number;
  frameCode: number;
  /** The instruction: see `InstructionKind`. */
  frameInstruction: number;
  instruction: InstructionKind;
  boundary: BoundaryKind;
  /** What `boundary` says of a frame stands here. */
  frameBoundary: number;
  /** Low bits of the code pointer that are not part of it. */
  codeTagMask: number;
  objectType: number;
  codeArgcount: number;
  codeFlags: number;
  codeFirstLine: number;
  codeFilename: number;
  codeName: number;
  /** 0 before 3.11, which has no qualified names. */
  codeQualname: number;
  codeLineTable: number;
  /** First byte of the code inside the object; 0 before 3.11, where it is another object. */
  codeStart: number;
  /** Free-threaded builds: copies of the code, one a thread; 0 where there are none. */
  codeThreadLocal: number;
  frameThreadLocalIndex: number;
  strings: StringLayout;
  bytesSize: number;
  bytesData: number;
}

export interface StringLayout {
  length: number;
  state: number;
  /** Characters of an ASCII string. */
  asciiData: number;
  /** Characters of another compact string. */
  compactData: number;
  /** The first of kind (3 bits), compact, ascii in the state. */
  kindShift: number;
}

/** How a frame says where it is: a byte offset, an offset in code units of two bytes, or a pointer into the code. */
export type InstructionKind = 'bytes' | 'units' | 'pointer';

/**
 * How Python frames are told apart by the run of the interpreter loop (the native frame) that executes them:
 * 'each': every frame has one of its own; 'entry': a byte says that the frame began one; 'owner': an extra frame,
 * which belongs to no function, stands below the first frame of a run.
 */
export type BoundaryKind = 'each' | 'entry' | 'owner';

const STRINGS_3_6: StringLayout = { length: 16, state: 32, asciiData: 48, compactData: 72, kindShift: 2 };
const STRINGS_3_12: StringLayout = { ...STRINGS_3_6, asciiData: 40, compactData: 56 };

const LAYOUT_3_6: PythonLayout = {
  threadFrame: 24,
  threadId: 152,
  threadNext: 8,
  threadBaseFrame: 0,
  runtimeInterpreters: 0,
  interpreterNext: 0,
  interpreterThreads: 8,
  threadCframe: 0,
  cframePrevious: 0,
  isFrameInCframe: false,
  cframeFrame: 0,
  framePrevious: 24,
  frameCode: 32,
  frameInstruction: 120,
  instruction: 'bytes',
  boundary: 'each',
  frameBoundary: 0,
  codeTagMask: 0,
  objectType: 8,
  codeArgcount: 16,
  codeFlags: 32,
  codeFirstLine: 36,
  codeFilename: 96,
  codeName: 104,
  codeQualname: 0,
  codeLineTable: 112,
  codeStart: 0,
  codeThreadLocal: 0,
  frameThreadLocalIndex: 0,
  strings: STRINGS_3_6,
  bytesSize: 16,
  bytesData: 32,
};

const LAYOUT_3_7: PythonLayout = {
  ...LAYOUT_3_6,
  threadId: 176,
  runtimeInterpreters: 24,
  frameInstruction: 104,
};

/** 3.8: positional-only arguments came in between. */
const LAYOUT_3_8: PythonLayout = {
  ...LAYOUT_3_7,
  runtimeInterpreters: 32,
  codeFlags: 36,
  codeFirstLine: 40,
  codeFilename: 104,
  codeName: 112,
  codeLineTable: 120,
};

const LAYOUT_3_10: PythonLayout = {
  ...LAYOUT_3_8,
  threadCframe: 48,
  cframePrevious: 8,
  frameInstruction: 96,
  instruction: 'units',
};

const LAYOUT_3_11: PythonLayout = {
  ...LAYOUT_3_10,
  threadFrame: 56,
  threadId: 152,
  runtimeInterpreters: 40,
  interpreterThreads: 16,
  threadCframe: 56,
  cframePrevious: 16,
  isFrameInCframe: true,
  cframeFrame: 8,
  framePrevious: 48,
  frameInstruction: 56,
  instruction: 'pointer',
  boundary: 'entry',
  frameBoundary: 68,
  codeArgcount: 56,
  codeFlags: 48,
  codeFirstLine: 72,
  codeFilename: 112,
  codeName: 120,
  codeQualname: 128,
  codeLineTable: 136,
  codeStart: 184,
};

const LAYOUT_3_12: PythonLayout = {
  ...LAYOUT_3_11,
  threadId: 136,
  interpreterThreads: 72,
  cframePrevious: 8,
  cframeFrame: 0,
  framePrevious: 8,
  frameCode: 0,
  boundary: 'owner',
  frameBoundary: 70,
  codeArgcount: 52,
  codeFirstLine: 68,
  codeStart: 192,
  strings: STRINGS_3_12,
};

const LAYOUTS: Readonly<Record<number, PythonLayout>> = {
  6: LAYOUT_3_6,
  7: LAYOUT_3_7,
  8: LAYOUT_3_8,
  9: LAYOUT_3_8,
  10: LAYOUT_3_10,
  11: LAYOUT_3_11,
  12: LAYOUT_3_12,
};

/** The layout of 3.6 to 3.12; undefined for others. */
export const layoutOf = (minor: number): PythonLayout | undefined => LAYOUTS[minor];

/** What the published offsets are laid over from 3.13 on. */
export const LATER_LAYOUT: PythonLayout = {
  ...LAYOUT_3_12,
  threadFrame: 72,
  threadCframe: 0,
  isFrameInCframe: false,
};

/**
 * Offset of `autoTSSkey` in _PyRuntime, in case PyGILState_GetThisThreadState can't be decoded; 3.6 has a plain
 * variable, 3.15 a thread-local one.
 */
export const AUTO_TSS_KEY: Readonly<Record<number, number>> = {
  7: 1504,
  8: 1392,
  9: 584,
  10: 584,
  11: 592,
  12: 1544,
  13: 2160,
  14: 2336,
};
