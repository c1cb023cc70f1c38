/** Names of the Itanium C++ ABI: `<encoding>`, `<name>` and what they are made of. */
import {
  readParameters,
  readSubstitution,
  readTemplateArgs,
  readTemplateArgument,
  readTemplateParameter,
  skipConstraint,
} from './itanium-arguments.ts';
import { readDecltype } from './itanium-expressions.ts';
import { readTemplateHead } from './itanium-heads.ts';
import { readIdentifier, readQualifiers, readSourceName } from './itanium-identifiers.ts';
import { baseName, endsInTemplate, type Node, namesItsResult, sequence, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { OPERATORS, SPECIAL_NAMES, SPECIAL_TYPES } from './itanium-tables.ts';
import { readType } from './itanium-types.ts';
import { NotDemangled } from './output.ts';

/** What a name says of the function that it names. */
interface NameFacts {
  qualifiers: string;
}

/** A function with its parameters, a variable, or a special name. `hasResult`: with the type of its result, where it says that. */
export function readEncoding(reader: Reader, hasResult: boolean): Node {
  reader.budget.enter();
  const node = readEncodingHere(reader, hasResult);
  reader.budget.leave();
  return node;
}

function readEncodingHere(reader: Reader, hasResult: boolean): Node {
  if (reader.peek() === 'T' || (reader.peek() === 'G' && /[VRT]/.test(reader.peek(1)))) {
    return readSpecialName(reader);
  }
  const [outerArgs, outerForwards, outerLambda] = [reader.templateArgs, reader.forwards, reader.lambda];
  const wasConversion = reader.isConversion;
  reader.templateArgs = [];
  reader.forwards = [];
  reader.lambda = undefined;
  reader.isConversion = false;
  const facts: NameFacts = { qualifiers: '' };
  const name = readName(reader, facts);
  resolveForwards(reader);
  const encoding = readSignature(reader, name, facts, hasResult);
  [reader.templateArgs, reader.forwards, reader.lambda] = [outerArgs, outerForwards, outerLambda];
  reader.isConversion = wasConversion;
  return encoding;
}

function resolveForwards(reader: Reader): void {
  for (const forward of reader.forwards) {
    forward.target = reader.templateArgs[forward.index];
    if (!forward.target) throw new NotDemangled('no argument');
  }
}

const endsEncoding = (reader: Reader): boolean => reader.atEnd || /[E.@Q]/.test(reader.peek());

function readSignature(reader: Reader, name: Node, facts: NameFacts, hasResult: boolean): Node {
  if (endsEncoding(reader)) return name;
  let result: Node | undefined;
  if (endsInTemplate(name) && !namesItsResult(name)) result = readType(reader);
  const parameters = readParameters(reader, () => endsEncoding(reader));
  skipConstraint(reader);
  return {
    kind: 'encoding',
    result: hasResult ? result : undefined,
    name,
    parameters,
    suffix: facts.qualifiers,
  };
}

function readSpecialName(reader: Reader): Node {
  const code = reader.source.slice(reader.at, reader.at + 2);
  reader.at += 2;
  const [ofType, ofName] = [SPECIAL_TYPES[code], SPECIAL_NAMES[code]];
  if (ofType) return sequence(ofType, readType(reader));
  if (ofName) return sequence(ofName, readName(reader));
  if (code === 'Th' || code === 'Tv') {
    reader.at--;
    readCallOffset(reader);
    const what = code === 'Th' ? 'non-virtual thunk to ' : 'virtual thunk to ';
    return sequence(what, readEncoding(reader, false));
  }
  if (code === 'Tc') {
    readCallOffset(reader);
    readCallOffset(reader);
    return sequence('covariant return thunk to ', readEncoding(reader, false));
  }
  if (code === 'TA') return sequence('template parameter object for ', readTemplateArgument(reader));
  if (code === 'TC') {
    const derived = readType(reader);
    reader.number();
    reader.expect('_');
    return sequence('construction vtable for ', readType(reader), '-in-', derived);
  }
  if (code === 'GR') {
    const name = readName(reader);
    const number = endsEncoding(reader) ? 0 : reader.index(36);
    return sequence(`reference temporary #${number} for `, name);
  }
  if (code === 'GT' && (reader.take('t') || reader.take('n')))
    return sequence('transaction clone for ', readEncoding(reader, false));
  throw new NotDemangled('no special name');
}

function readCallOffset(reader: Reader): void {
  if (reader.take('h')) reader.number();
  else {
    reader.expect('v');
    reader.number();
    reader.expect('_');
    reader.number();
  }
  reader.expect('_');
}

export function readName(reader: Reader, facts?: NameFacts): Node {
  reader.budget.enter();
  const node = readNameHere(reader, facts);
  reader.budget.leave();
  return node;
}

function readNameHere(reader: Reader, facts: NameFacts | undefined): Node {
  if (reader.peek() === 'N') return readNestedName(reader, facts);
  if (reader.peek() === 'Z') return readLocalName(reader, facts);
  let name: Node;
  if (reader.peek() === 'S' && reader.peek(1) !== 't') {
    name = readSubstitution(reader);
    if (reader.peek() !== 'I') throw new NotDemangled('no template');
  } else {
    name = readUnscopedName(reader);
    if (reader.peek() !== 'I') return name;
    reader.substitute(name);
  }
  return { kind: 'template', name, args: readTemplateArgs(reader, facts !== undefined) };
}

function readUnscopedName(reader: Reader): Node {
  const isStandard = reader.take('St');
  const name = readUnqualifiedName(reader, undefined);
  return isStandard ? { kind: 'nested', scope: text('std'), name } : name;
}

export function readNestedName(reader: Reader, facts?: NameFacts): Node {
  reader.expect('N');
  let qualifiers = reader.take('H') ? '' : readQualifiers(reader);
  if (reader.take('O')) qualifiers += ' &&';
  else if (reader.take('R')) qualifiers += ' &';
  if (facts) facts.qualifiers = qualifiers;
  let name: Node | undefined;
  while (!reader.take('E')) {
    const before = reader.at;
    name = readComponent(reader, name, facts);
    // a substitution as such is not a new one
    if (reader.source[before] !== 'S' || reader.source[before + 1] === 't') reader.substitute(name);
    reader.take('M');
  }
  if (!name) throw new NotDemangled('no name');
  reader.substitutions.pop();
  return name;
}

function readComponent(reader: Reader, scope: Node | undefined, facts: NameFacts | undefined): Node {
  const [next, second] = [reader.peek(), reader.peek(1)];
  if (next === 'I') {
    if (!scope) throw new NotDemangled('no template');
    return { kind: 'template', name: scope, args: readTemplateArgs(reader, facts !== undefined) };
  }
  if (!scope) {
    if (next === 'T') return readTemplateParameter(reader);
    if (next === 'D' && (second === 't' || second === 'T')) return readDecltype(reader);
    if (next === 'S' && second !== 't') return readSubstitution(reader);
    if (next === 'S') return readUnscopedName(reader);
    return readUnqualifiedName(reader, undefined);
  }
  return { kind: 'nested', scope, name: readUnqualifiedName(reader, scope) };
}

function readLocalName(reader: Reader, facts?: NameFacts): Node {
  reader.expect('Z');
  const scope = readEncoding(reader, false);
  reader.expect('E');
  if (reader.take('s')) {
    readDiscriminator(reader);
    return { kind: 'nested', scope, name: text('string literal') };
  }
  if (reader.take('d')) {
    const number = reader.index() + 1;
    const argument: Node = { kind: 'nested', scope, name: text(`{default arg#${number}}`) };
    return { kind: 'nested', scope: argument, name: readName(reader, facts) };
  }
  const name = readName(reader, facts);
  readDiscriminator(reader);
  return { kind: 'nested', scope, name };
}

function readDiscriminator(reader: Reader): void {
  if (reader.take('__')) {
    reader.digits();
    reader.expect('_');
    return;
  }
  // more than one digit stand there only at the end: gcc wrote them so before 8
  const digits = /^_(?:\d+(?=$|[E.@])|\d)/.exec(reader.source.slice(reader.at, reader.at + 8))?.[0];
  reader.at += digits?.length ?? 0;
}

/** `scope` is what a constructor constructs. */
function readUnqualifiedName(reader: Reader, scope: Node | undefined): Node {
  const isInternal = reader.take('L');
  const isFriend = reader.take('F');
  const next = reader.peek();
  let name: Node;
  if (next >= '0' && next <= '9') {
    name = readSourceName(reader);
    if (isInternal) readDiscriminator(reader);
  } else if (next === 'U') name = readUnnamed(reader);
  else if (next === 'D' && reader.peek(1) === 'C') name = readBinding(reader);
  else if ((next === 'C' || next === 'D') && scope) name = readConstructor(reader, scope);
  else name = readOperatorName(reader);
  while (reader.take('B')) name = { kind: 'tagged', child: name, tag: readIdentifier(reader) };
  return isFriend ? sequence(name, '[friend]') : name;
}

/** `Ul` parameters `E` number: a lambda; `Ut` number: a type without a name. */
function readUnnamed(reader: Reader): Node {
  if (reader.take('Ut')) return text(`{unnamed type#${reader.index() + 1}}`);
  reader.expect('Ul');
  const outer = reader.lambda;
  const { head, names } = readTemplateHead(reader);
  reader.lambda = names;
  const parameters = readParameters(reader, () => /[EQ]/.test(reader.peek()));
  skipConstraint(reader);
  reader.lambda = outer;
  reader.expect('E');
  return { kind: 'lambda', head, parameters, number: reader.index() + 1 };
}

function readBinding(reader: Reader): Node {
  reader.expect('DC');
  const items = reader.untilEnd(() => readSourceName(reader));
  return sequence('[', { kind: 'list', items }, ']');
}

function readConstructor(reader: Reader, scope: Node): Node {
  const destructor = reader.take('D');
  const inherits = !destructor && reader.take('C') && reader.take('I');
  if (!/[0-9]/.test(reader.peek())) throw new NotDemangled('no constructor');
  reader.at++;
  // a constructor of the class that it is inherited from
  return { kind: 'constructor', of: baseName(inherits ? readType(reader) : scope), destructor };
}

function readOperatorName(reader: Reader): Node {
  if (reader.take('cv')) {
    const [before, wasOpen] = [reader.isConversion, reader.isOpenConversion];
    reader.isConversion = true;
    reader.isOpenConversion = true;
    const type = readType(reader);
    [reader.isConversion, reader.isOpenConversion] = [before, wasOpen];
    return { kind: 'conversion', type };
  }
  if (reader.take('li')) return sequence('operator"" ', readSourceName(reader));
  const operator = OPERATORS[reader.source.slice(reader.at, reader.at + 2)];
  if (!operator) throw new NotDemangled('no operator');
  reader.at += 2;
  const spelling = operator[0].trimEnd();
  return text(`operator${/^[a-z]/.test(spelling) ? ' ' : ''}${spelling}`);
}
