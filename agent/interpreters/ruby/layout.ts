/**
 * Where Ruby keeps what a frame needs: vm_core.h, iseq.h, method.h, gc.c and internal/class.h of each version. Offsets in bytes.
 * Those of 2.7, 3.1 and 3.3 were read out of live processes, the others are from the sources; patch releases have moved some.
 */
export interface RubyLayout {
  /** rb_control_frame_t. */
  frameBytes: number;
  /** rb_thread_t: the number of its thread; 0 where the execution context is thread-local. */
  threadId: number;
  /** rb_vm_t: the object space; 0: not known. */
  collector: number;
  /** rb_objspace_t: its flags. */
  collectorFlags: number;
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
/** iseq.h: ISEQ_TYPE_METHOD. */
export const TYPE_METHOD = 1;

const BEFORE_3_2 = { lines: 120, lineCount: 136, lineIndex: 144, localIseq: 176 };
const SINCE_3_2 = { lines: 112, lineCount: 128, lineIndex: 136, localIseq: 168 };
const SINCE_4 = { ...SINCE_3_2, localIseq: 176 };

const classesAt = (base: number, name: number, attached: number, singletonFlag: number) => ({
  name: base + name,
  attached: base + attached,
  singletonFlag: 2 ** singletonFlag,
});

const OLD = {
  ...BEFORE_3_2,
  frameBytes: 56,
  threadId: 0,
  collector: 0,
  collectorFlags: 0,
  lineBytes: 8,
  hasPlainFirstLine: false,
  hasStringLength: false,
  classes: undefined,
  lastOperator: 168,
};
const R31 = { ...OLD, frameBytes: 64, lineBytes: 12, lastOperator: 169, collector: 1104, collectorFlags: 16 };
const R32 = { ...R31, ...SINCE_3_2, hasPlainFirstLine: true, hasStringLength: true, collector: 1128 };
const R33 = { ...R32, frameBytes: 56, collector: 1304, classes: classesAt(32, 120, 96, 12) };
const R34 = {
  ...R33,
  collector: 1296,
  collectorFlags: 20,
  classes: classesAt(32, 120, 96, 13),
  lastOperator: 170,
};
const R40 = {
  ...R34,
  ...SINCE_4,
  collector: 1248,
  collectorFlags: 28,
  classes: classesAt(24, 128, 112, 13),
  lastOperator: 171,
};

/** Major and minor as one number: 303 is 3.3. */
const LAYOUTS: Readonly<Record<number, RubyLayout>> = {
  207: { ...OLD, threadId: 0 },
  300: OLD,
  301: R31,
  302: R32,
  303: R33,
  304: R34,
  305: { ...R34, lastOperator: 171 },
  400: R40,
};
const NEWEST = 400;
/** From this patch release of 4.0 on the object space stands a word further back. */
const MOVED_IN_4_0 = 6;

/** Undefined where the version is too old; later ones have that of the newest: what is read is checked. */
export function layoutOf(major: number, minor: number, patch: number): RubyLayout | undefined {
  const layout = LAYOUTS[Math.min(major * 100 + minor, NEWEST)];
  if (layout && major === 4 && (minor > 0 || patch >= MOVED_IN_4_0))
    return { ...layout, collector: layout.collector + 8 };
  return layout;
}
