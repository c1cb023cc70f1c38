/** What methods are called: classes (internal/class.h, from 3.3 on), and names of functions that are written in C (symbol.c). */
import { DEFINITION_ID, ENTRY, type RubyLayout } from './layout.ts';
import { type RubyObjects, wordAt } from './objects.ts';

const IMEMO_ENTRY = 6;
const T_ICLASS = 0x1c;
const MAX_NAME = 512;
/** global_symbols: the last serial number (u32), and the array of names. */
const NAMES = 16;
/** Names stand in arrays of 512 pairs. */
const NAMES_AN_ARRAY = 512;

/** `Alpha#` or `Alpha.`, '' where its class has no name. */
export function classPrefix(objects: RubyObjects, { classes }: RubyLayout, entry: number): string {
  if (!classes || !objects.isImemo(entry, IMEMO_ENTRY)) return '';
  const owner = objects.word(entry + ENTRY.class) || objects.word(entry + ENTRY.owner);
  const flags = objects.flags(owner) ?? 0;
  // a module as it is included: its own class is the module
  const klass = (flags & 0x1f) === T_ICLASS ? objects.word(owner + 8) : owner;
  const isSingleton = ((objects.flags(klass) ?? 0) & classes.singletonFlag) !== 0;
  const named = isSingleton ? objects.word(klass + classes.attached) : klass;
  const name = objects.string(objects.word(named + classes.name), MAX_NAME);
  return name ? `${name}${isSingleton ? '.' : '#'}` : '';
}

/** The method's own name; undefined where it can't be found. `symbols`: address of global_symbols. */
export function methodName(
  objects: RubyObjects,
  { lastOperator }: RubyLayout,
  { entry, symbols }: { entry: number; symbols: number },
): string | undefined {
  const view = objects.view(objects.word(entry + ENTRY.definition) + DEFINITION_ID, 8);
  if (!view) return undefined;
  const id = wordAt(view, 0);
  const serial = id > lastOperator ? Math.floor(id / 16) : id;
  const names = objects.element(objects.word(symbols + NAMES), Math.floor(serial / NAMES_AN_ARRAY));
  const name = names && objects.element(names, (serial % NAMES_AN_ARRAY) * 2);
  return name ? objects.string(name, MAX_NAME) : undefined;
}
