/**
 * Names of methods out of metadata, as people wrote them: `Shop.Cart<T>.Add`. The C# compiler moves code into methods and
 * types of its own, whose names say what they were made of:
 *
 *   <Load>d__3.MoveNext      what is left of an async method or iterator Load: its name is shown
 *   <>c.<Sum>b__1_0          a lambda in Sum: Sum.lambda
 *   <Sum>g__Add|1_0          the local function Add in Sum: Sum.Add
 */
import { MalformedMetadata, type Metadata, Table } from './metadata.ts';

const TYPE_NAME = 1;
const TYPE_NAMESPACE = 2;
const TYPE_METHODS = 5;
const METHOD_NAME = 3;
const MAX_NESTING = 16;
const MAX_PARAMETERS = 32;
const PARAMETER_OWNER = 2;
const PARAMETER_NAME = 3;

/** `row`: of the method, from 1. Throws {@link MalformedMetadata} and what reading throws. */
export function methodName(metadata: Metadata, row: number): string {
  const method = metadata.string(metadata.value(Table.methodDef, row, METHOD_NAME));
  const type = metadata.lastRowUpTo(Table.typeDef, TYPE_METHODS, row);
  if (type === 0 || method === '') throw new MalformedMetadata(`method ${row} has no type or no name`);
  const { namespace, types } = typePath(metadata, type);
  const path = writtenPath([...types, method]);
  return [namespace, ...path].filter((part) => part !== '').join('.');
}

/** Names of the type and those around it, the outermost first. */
function typePath(metadata: Metadata, row: number): { namespace: string; types: string[] } {
  const types: string[] = [];
  let [type, namespace] = [row, ''];
  for (let i = 0; i < MAX_NESTING && type !== 0; i++) {
    types.unshift(typeName(metadata, type));
    namespace = metadata.string(metadata.value(Table.typeDef, type, TYPE_NAMESPACE));
    const nested = metadata.lastRowUpTo(Table.nestedClass, 0, type);
    const isNested = nested > 0 && metadata.value(Table.nestedClass, nested, 0) === type;
    type = isNested ? metadata.value(Table.nestedClass, nested, 1) : 0;
  }
  return { namespace, types };
}

/** List`1 with its parameter: List<T>. */
function typeName(metadata: Metadata, row: number): string {
  const name = metadata.string(metadata.value(Table.typeDef, row, TYPE_NAME));
  const tick = name.lastIndexOf('`');
  if (tick <= 0) return name;
  const count = Math.min(Number(name.slice(tick + 1)) || 0, MAX_PARAMETERS);
  const all = parametersOf(metadata, row << 1);
  const own = all.slice(Math.max(0, all.length - count));
  return own.length > 0 ? `${name.slice(0, tick)}<${own.join(',')}>` : name.slice(0, tick);
}

/** A nested type has those of the types around it first. */
function parametersOf(metadata: Metadata, owner: number): string[] {
  const names: string[] = [];
  for (
    let row = metadata.lastRowUpTo(Table.genericParam, PARAMETER_OWNER, owner);
    row > 0 &&
    names.length < MAX_PARAMETERS &&
    metadata.value(Table.genericParam, row, PARAMETER_OWNER) === owner;
    row--
  )
    names.unshift(metadata.string(metadata.value(Table.genericParam, row, PARAMETER_NAME)));
  return names;
}

/** What a compiler's name has in its brackets: the method, or that of statements outside of any. */
const OWNER = String.raw`<(<Main>\$|[^<>]+)>`;
const GENERIC = String.raw`(?:__\d+)?(?:<.*>)?$`;
const STATE_MACHINE = new RegExp(`^${OWNER}d${GENERIC}`);
const LOCAL_STATE_MACHINE = new RegExp(String.raw`^<${OWNER}(?:g__([^|]+)\|[\d_]+|b__[\d_]+)>d${GENERIC}`);
const CLOSURE = /^<>c(?:__DisplayClass[\d_]+)?(?:<.*>)?$/;
const LAMBDA = new RegExp(String.raw`^${OWNER}b__[\d_]+$`);
const LOCAL_FUNCTION = new RegExp(String.raw`^${OWNER}g__([^|]+)\|[\d_]+$`);

const ownerName = (owner: string): string => (owner === '<Main>$' ? 'Main' : owner);

/** Without what the compiler made of what was written. */
export function writtenPath(path: readonly string[]): string[] {
  const written = path.slice(0, -1).filter((name) => !CLOSURE.test(name));
  const method = path.at(-1)!;
  const type = written.at(-1) ?? '';
  if (method === 'MoveNext') {
    const machine = STATE_MACHINE.exec(type);
    if (machine) return [...written.slice(0, -1), ownerName(machine[1]!)];
    const inner = LOCAL_STATE_MACHINE.exec(type);
    if (inner) return [...written.slice(0, -1), ownerName(inner[1]!), inner[2] ?? 'lambda'];
  }
  const lambda = LAMBDA.exec(method);
  if (lambda) return [...written, ownerName(lambda[1]!), 'lambda'];
  const local = LOCAL_FUNCTION.exec(method);
  return local ? [...written, ownerName(local[1]!), local[2]!] : [...written, ownerName(method)];
}
