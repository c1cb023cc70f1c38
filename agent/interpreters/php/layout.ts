/**
 * Where PHP keeps what a frame needs: Zend/zend_compile.h and Zend/zend_globals.h of each version. Offsets in bytes; read
 * from the headers of 7.4, 8.2 and 8.4 by a compiler, of the others from their sources; those of 8.1, 8.3, 8.5 and 8.6 were seen
 * to hold in live processes.
 */
export interface PhpLayout {
  /** executor_globals.current_execute_data. */
  currentFrame: number;
  /** zend_op_array.filename; the first and the last line stand behind it. */
  functionFile: number;
  /** zend_generator.execute_data and node.parent. */
  generatorFrame: number;
  generatorInner: number;
}

/** Before, a generator began with its iterator. */
const WITH_ITERATOR = { generatorFrame: 64, generatorInner: 160 };
const GENERATOR = { generatorFrame: 56, generatorInner: 152 };

/** zend_function: type (u8), name and class. */
export const FUNCTION = { type: 0, name: 8, scope: 16 } as const;
/** zend_string: length (u64) and characters. */
export const STRING = { length: 16, data: 24 } as const;
/** zend_class_entry. */
export const CLASS_NAME = 8;

/** Major and minor as one number: 804 is 8.4. */
const LAYOUTS: Readonly<Record<number, PhpLayout>> = {
  703: { currentFrame: 488, functionFile: 128, ...WITH_ITERATOR },
  704: { currentFrame: 488, functionFile: 136, ...WITH_ITERATOR },
  800: { currentFrame: 488, functionFile: 144, ...GENERATOR },
  801: { currentFrame: 488, functionFile: 144, ...GENERATOR },
  802: { currentFrame: 488, functionFile: 152, ...GENERATOR },
  803: { currentFrame: 488, functionFile: 144, ...GENERATOR },
  804: { currentFrame: 488, functionFile: 168, ...GENERATOR },
  805: { currentFrame: 512, functionFile: 168, ...GENERATOR },
  806: { currentFrame: 512, functionFile: 168, ...GENERATOR },
};
const NEWEST = 806;

/** That of the newest version whose layout is known, for later ones: what is read is checked. Undefined where it is too old. */
export const layoutOf = (major: number, minor: number): PhpLayout | undefined => {
  const version = major * 100 + minor;
  return LAYOUTS[Math.min(version, NEWEST)];
};
