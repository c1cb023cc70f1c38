/** Arguments of templates and functions, and references to what came before. */
import { readIdentifier } from './itanium-identifiers.ts';
import { type Node, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { meaningOf, rebind } from './itanium-rebind.ts';
import { STANDARD_NAMES } from './itanium-tables.ts';
import { NotDemangled } from './output.ts';

/** Types up to the end; a lone `v` is none. */
export function readParameters(reader: Reader, ends: () => boolean): Node[] {
  if (reader.peek() === 'v') {
    reader.at++;
    if (ends()) return [];
    reader.at--;
  }
  const parameters = [reader.grammar.type(reader)];
  while (!ends()) parameters.push(reader.grammar.type(reader));
  return parameters;
}

/** `S_`, `S0_`, …: what came before; `Sa`, `Ss`, …: abbreviations of the standard library. */
export function readSubstitution(reader: Reader): Node {
  reader.expect('S');
  const standard = STANDARD_NAMES[reader.peek()];
  if (!standard) {
    const node = reader.substitutions[reader.index(36)];
    if (!node) throw new NotDemangled('no substitution');
    return rebind(reader, node);
  }
  reader.at++;
  const [short, full, base] = standard;
  const isVerbose = reader.peek() === 'C' || reader.peek() === 'D';
  const result = isVerbose
    ? verboseName(full, base)
    : ({ kind: 'nested', scope: text('std'), name: text(short.slice('std::'.length)) } as const);
  if (reader.peek() !== 'B') return result;
  let tagged: Node = result;
  while (reader.take('B')) tagged = { kind: 'tagged', child: tagged, tag: readIdentifier(reader) };
  return reader.substitute(tagged);
}

/** A full name whose constructor is called by its base name. */
function verboseName(full: string, base: string): Node {
  const from = full.indexOf('<');
  const name: Node = { kind: 'nested', scope: text('std'), name: text(base) };
  if (from < 0) return name;
  return { kind: 'template', name, args: [text(full.slice(from + 1, -1).trim())] };
}

/** `sr` and the like name things of types that are not known yet. */
export function readTemplateArgsIfAny(reader: Reader, name: Node): Node {
  if (reader.peek() !== 'I') return name;
  return { kind: 'template', name, args: readTemplateArgs(reader, false) };
}

/** `T_`, `T0_`, …: an argument of the template around it. */
export function readTemplateParameter(reader: Reader): Node {
  reader.expect('T');
  if (reader.isConstraint && reader.take('L')) {
    reader.digits();
    reader.expect('_');
    return text(`T${reader.index()}`);
  }
  const index = reader.index();
  const target = reader.isConversion ? undefined : meaningOf(reader, index);
  if (!target && reader.isConstraint) return text(`T${index}`);
  if (!target && !reader.isConversion) throw new NotDemangled('no template argument');
  const parameter: Node = { kind: 'parameter', index, target };
  if (!target) reader.forwards.push(parameter);
  return parameter;
}

/** `names`: template parameters that follow are parameters of this template. */
export function readTemplateArgs(reader: Reader, names: boolean): Node[] {
  reader.expect('I');
  const wasOpen = reader.isOpenConversion;
  reader.isOpenConversion = false;
  if (names) reader.templateArgs = [];
  const target = reader.templateArgs;
  const args = reader.untilEnd(() => {
    const argument = readTemplateArgument(reader);
    if (names) target.push(argument);
    skipConstraint(reader);
    return argument;
  });
  reader.isOpenConversion = wasOpen;
  return args;
}

/** A `requires` clause: it is no part of the name as people write it. */
export function skipConstraint(reader: Reader): void {
  if (!reader.take('Q')) return;
  const before = reader.isConstraint;
  reader.isConstraint = true;
  reader.grammar.expression(reader);
  reader.isConstraint = before;
}

export function readTemplateArgument(reader: Reader): Node {
  reader.budget.enter();
  const node = readArgumentHere(reader);
  reader.budget.leave();
  return node;
}

function readArgumentHere(reader: Reader): Node {
  if (reader.grammar.skipDeclaration(reader)) return readTemplateArgument(reader);
  if (reader.take('X')) {
    const expression = reader.grammar.expression(reader);
    reader.expect('E');
    return expression;
  }
  // I: of gcc before 4.7
  if (reader.take('J') || reader.take('I'))
    return { kind: 'pack', items: reader.untilEnd(() => readTemplateArgument(reader)) };
  if (reader.take('LZ')) {
    const encoding = reader.grammar.constantFunction(reader);
    reader.expect('E');
    return encoding;
  }
  return reader.peek() === 'L' ? reader.grammar.literal(reader) : reader.grammar.type(reader);
}
