/** HotSpot's flags as they are in a process, out of the array that its own description of types leads to. */
import type { RuntimeMemory } from '../runtime-memory.ts';
import type { VmTables } from './vm-tables.ts';

/** The type is called Flag up to JDK 9. */
export const FLAG_TYPES = ['JVMFlag', 'Flag'] as const;
/** JDK 8 has 1,300, JDK 21 1,500. */
const MAX_FLAGS = 4096;
const MAX_FLAG_BYTES = 256;

/** Where that flag's entry was in the same file's array: its order is the file's. */
export type FlagHints = Map<string, number>;

/** Value of a flag that is on or off; undefined where it is not there. Throws CannotRead. */
export function readFlag(
  memory: RuntimeMemory,
  tables: VmTables,
  name: string,
  hints: FlagHints = new Map(),
): boolean | undefined {
  const type = FLAG_TYPES.find((each) => tables.fields.has(`${each}.flags`));
  const field = (member: string) => tables.fields.get(`${type}.${member}`);
  const [flags, count, nameField, value] = ['flags', 'numFlags', '_name', '_addr'].map(field);
  const stride = tables.sizes.get(type ?? '') ?? 0;
  if (!flags || !count || !nameField || !value) return undefined;
  if (stride < 16 || stride > MAX_FLAG_BYTES || nameField.offset > stride - 8 || value.offset > stride - 8)
    return undefined;
  const array = memory.word(flags.address);
  const length = Math.min(memory.word(count.address), MAX_FLAGS);
  const isAt = (i: number): boolean => {
    const text = memory.word(array + i * stride + nameField.offset);
    return text !== 0 && memory.text(text, name.length + 1) === name;
  };
  const hint = hints.get(name);
  if (hint !== undefined && hint < length && isAt(hint)) return valueAt(hint);
  for (let i = 0; i < length; i++) {
    if (!isAt(i)) continue;
    hints.set(name, i);
    return valueAt(i);
  }
  return undefined;

  function valueAt(i: number): boolean {
    return memory.u8(memory.word(array + i * stride + value!.offset)) !== 0;
  }
}
