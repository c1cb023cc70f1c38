/**
 * Where Ruby keeps what a frame needs: vm_core.h, iseq.h, method.h, gc.c and internal/class.h of each version. Offsets in bytes.
 * Those of 2.7 to 3.4 were seen to hold in live processes, the others are from the sources.
 */
export interface RubyLayout {
  /** rb_control_frame_t. */
  frameBytes: number;
  /** rb_execution_context_t.thread_ptr. */
  contextThread: number;
  /** rb_thread_t: its rb_vm_t, which leads to the collector, and the number of its thread; 0 where the execution context is thread-local. */
  threadMachine: number;
  threadId: number;
  /** rb_iseq_constant_body. */
  lines: number;
  lineCount: number;
  lineIndex: number;
  localIseq: number;
  /** Of an entry of the table of lines. */
  lineBytes: number;
  /** location.first_lineno is a number of C, not of Ruby. */
  hasPlainFirstLine: boolean;
  /** Strings keep their length in the object, however short. */
  hasStringLength: boolean;
  /** RClass: what it is called, and of a singleton class whose; undefined before 3.3, where names are in a table. */
  classes: { name: number; attached: number; singletonFlag: number } | undefined;
  /** The last ID of an operator: those are their own serial numbers. */
  lastOperator: number;
}

/** Of every version. */
export const ISEQ_BODY = 16;
export const BODY = { type: 0, size: 4, code: 8, file: 64, baseLabel: 72, label: 80, firstLine: 88 } as const;
export const BODY_BYTES = 192;
export const ENTRY = { class: 8, definition: 16, owner: 32 } as const;
/** rb_method_definition_t. */
export const DEFINITION_ID = 32;
/** iseq.h: ISEQ_TYPE_METHOD, ISEQ_TYPE_EVAL. */
export const TYPE_METHOD = 1;
export const TYPE_EVAL = 6;

/** rb_iseq_constant_body.parent_iseq. */
export const parentIseq = ({ localIseq }: RubyLayout): number => localIseq - 8;

const BEFORE_3_2 = { lines: 120, lineCount: 136, lineIndex: 144, localIseq: 176 };
const SINCE_3_2 = { lines: 112, lineCount: 128, lineIndex: 136, localIseq: 168 };
const SINCE_4 = { ...SINCE_3_2, localIseq: 176 };

const classesAt = (base: number, name: number, attached: number, singletonFlag: number) => ({
  name: base + name,
  attached: base + attached,
  singletonFlag: 2 ** singletonFlag,
});

const R30 = {
  ...BEFORE_3_2,
  frameBytes: 56,
  contextThread: 56,
  threadMachine: 32,
  threadId: 0,
  lineBytes: 8,
  hasPlainFirstLine: false,
  hasStringLength: false,
  classes: undefined,
  lastOperator: 168,
};
/** Without ractors. */
const R27 = { ...R30, threadMachine: 24, threadId: 72 };
/** Flags of interrupts have four bytes each, no longer eight. */
const R31 = { ...R30, contextThread: 48, frameBytes: 64, lineBytes: 12, lastOperator: 169 };
const R32 = { ...R31, ...SINCE_3_2, hasPlainFirstLine: true, hasStringLength: true };
const R33 = { ...R32, frameBytes: 56, classes: classesAt(32, 120, 96, 12) };
const R34 = { ...R33, classes: classesAt(32, 120, 96, 13), lastOperator: 170 };
const R40 = { ...R34, ...SINCE_4, classes: classesAt(24, 128, 112, 13), lastOperator: 171 };

/** Major and minor as one number: 303 is 3.3. */
const LAYOUTS: Readonly<Record<number, RubyLayout>> = {
  207: R27,
  300: R30,
  301: R31,
  302: R32,
  303: R33,
  304: R34,
  305: { ...R34, lastOperator: 171 },
  400: R40,
};
const NEWEST = 400;

/** Undefined where the version is too old; later ones have that of the newest: what is read is checked. */
export const layoutOf = (major: number, minor: number): RubyLayout | undefined =>
  LAYOUTS[Math.min(major * 100 + minor, NEWEST)];
