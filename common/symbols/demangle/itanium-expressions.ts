/** Expressions of the Itanium C++ ABI: in `decltype`, array sizes and template arguments. */
import {
  readParameters,
  readSubstitution,
  readTemplateArgsIfAny,
  readTemplateArgument,
  readTemplateParameter,
} from './itanium-arguments.ts';
import { readSourceName } from './itanium-identifiers.ts';
import { endsInTemplate, type Node, sequence, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { LITERAL_SUFFIXES, OPERATORS } from './itanium-tables.ts';
import { NotDemangled } from './output.ts';

export function readExpression(reader: Reader): Node {
  reader.budget.enter();
  const node = readPrimary(reader) ?? readOperation(reader);
  reader.budget.leave();
  return node;
}

/** What has no operator. */
function readPrimary(reader: Reader): Node | undefined {
  const next = reader.peek();
  if (next === 'L') return readLiteral(reader);
  if (next === 'T') return readTemplateParameter(reader);
  if (next >= '0' && next <= '9') return readTemplateArgsIfAny(reader, readSourceName(reader));
  if (/^f(?:p|L\d)/.test(reader.source.slice(reader.at, reader.at + 3))) return readFunctionParameter(reader);
  if (reader.take('sr')) return readScoped(reader);
  if (reader.take('sp')) return { kind: 'expansion', child: readExpression(reader) };
  if (reader.take('il')) return sequence('{', readList(reader), '}');
  if (reader.take('tl')) return sequence(reader.grammar.type(reader), '{', readList(reader), '}');
  if (reader.take('gs')) return sequence('::', readExpression(reader));
  if (next === 'f') return readFold(reader);
  if (next === 'd' && /[ixX]/.test(reader.peek(1))) return readDesignated(reader);
  if (reader.take('u')) return readVendorExpression(reader);
  if (next === 'r' && /[qQ]/.test(reader.peek(1))) return readRequirements(reader);
  if (reader.take('on')) {
    const operator = OPERATORS[reader.source.slice(reader.at, reader.at + 2)];
    if (!operator) throw new NotDemangled('no operator');
    reader.at += 2;
    return readTemplateArgsIfAny(reader, text(`operator${operator[0].trimEnd()}`));
  }
  return undefined;
}

const readList = (reader: Reader): Node => ({
  kind: 'list',
  items: reader.untilEnd(() => readExpression(reader)),
});

/** Names, parameters and lists need no parentheses around them. */
function operand(node: Node): Node {
  const isSimple =
    node.kind === 'text' ||
    (node.kind === 'nested' && !endsInTemplate(node)) ||
    (node.kind === 'sequence' && typeof node.parts[0] === 'string' && /^[{]/.test(node.parts[0]));
  return isSimple ? node : sequence('(', node, ')');
}

function readOperation(reader: Reader): Node {
  const code = reader.source.slice(reader.at, reader.at + 2);
  if (code === 'cv') return readConversion(reader);
  const operator = OPERATORS[code];
  if (!operator) throw new NotDemangled('no expression');
  reader.at += 2;
  const [spelling, operands] = operator;
  switch (code) {
    case 'cl': {
      const callee = readExpression(reader);
      return sequence(operand(callee.kind === 'encoding' ? callee.name : callee), '(', readList(reader), ')');
    }
    case 'st':
    case 'at':
    case 'ti':
      return sequence(spelling, '(', reader.grammar.type(reader), ')');
    case 'sZ':
      return { kind: 'count', items: [readExpression(reader)] };
    case 'sP':
      return { kind: 'count', items: reader.untilEnd(() => readTemplateArgument(reader)) };
    case 'dc':
    case 'cc':
    case 'sc':
    case 'rc': {
      const type = reader.grammar.type(reader);
      return sequence(spelling, '<', type, '>(', readExpression(reader), ')');
    }
    case 'nw':
    case 'na':
      return readNew(reader, spelling);
    case 'dt':
    case 'pt': {
      const object = readExpression(reader);
      return sequence(operand(object), spelling, readExpression(reader));
    }
    case 'qu': {
      const condition = readExpression(reader);
      const yes = readExpression(reader);
      return sequence(operand(condition), '?', operand(yes), ' : ', operand(readExpression(reader)));
    }
    case 'pp':
    case 'mm':
      if (reader.take('_')) return sequence(spelling, operand(readExpression(reader)));
      return sequence(operand(readExpression(reader)), spelling);
  }
  return readPlain(reader, spelling, operands);
}

function readPlain(reader: Reader, spelling: string, operands: number): Node {
  if (operands === 0) return text(spelling);
  const first = readExpression(reader);
  if (operands === 1) return sequence(spelling, operand(spelling === '&' ? withoutParameters(first) : first));
  const second = readExpression(reader);
  if (spelling === '[]') return sequence(operand(first), '[', second, ']');
  const whole = sequence(operand(first), spelling, operand(second));
  // a bare > would end the template's arguments
  return spelling === '>' ? sequence('(', whole, ')') : whole;
}

/** The address of a member says which by its name alone. */
const withoutParameters = (node: Node): Node =>
  node.kind === 'encoding' && node.name.kind === 'nested' && node.suffix === '' ? node.name : node;

function readConversion(reader: Reader): Node {
  reader.expect('cv');
  const type = reader.grammar.type(reader);
  if (reader.take('_')) return sequence('(', type, ')(', readList(reader), ')');
  return sequence('(', type, ')', operand(readExpression(reader)));
}

function readNew(reader: Reader, spelling: string): Node {
  const placement: Node[] = [];
  while (!reader.take('_')) placement.push(readExpression(reader));
  const type = reader.grammar.type(reader);
  const where: Node[] =
    placement.length > 0 ? [text('('), { kind: 'list', items: placement }, text(')')] : [];
  const parts = [`${spelling} `, ...where, type];
  if (reader.take('pi')) return sequence(...parts, '(', readList(reader), ')');
  if (reader.take('il')) return sequence(...parts, '{', readList(reader), '}');
  reader.expect('E');
  return sequence(...parts);
}

/** `fl` and `fr` operator pack, `fL` and `fR` operator, and what stands at both ends. */
function readFold(reader: Reader): Node {
  reader.expect('f');
  const kind = reader.peek();
  const operator = OPERATORS[reader.source.slice(reader.at + 1, reader.at + 3)];
  if (!/[lrLR]/.test(kind) || !operator) throw new NotDemangled('no fold');
  reader.at += 3;
  const [spelling] = operator;
  const first = operand(readExpression(reader));
  if (kind === 'l') return sequence('(...', spelling, first, ')');
  if (kind === 'r') return sequence('(', first, spelling, '...)');
  return sequence('(', first, spelling, '...', spelling, operand(readExpression(reader)), ')');
}

/** `.name=value`, `[index]=value`, `[first ... last]=value`, and such of the value's own members. */
function readDesignated(reader: Reader): Node {
  const place = readDesignator(reader);
  const isNested = /^d[ixX]/.test(reader.source.slice(reader.at, reader.at + 2));
  const value = readExpression(reader);
  return isNested ? sequence(place, value) : sequence(place, '=', operand(value));
}

function readDesignator(reader: Reader): Node {
  if (reader.take('di')) return sequence('.', readSourceName(reader));
  const isRange = reader.peek(1) === 'X';
  reader.at += 2;
  const first = readExpression(reader);
  return isRange ? sequence('[', first, ' ... ', readExpression(reader), ']') : sequence('[', first, ']');
}

/** Such as `__alignof__`, with types and expressions as its arguments. */
function readVendorExpression(reader: Reader): Node {
  const name = readSourceName(reader);
  return sequence(
    name,
    '(',
    { kind: 'list', items: reader.untilEnd(() => readTemplateArgument(reader)) },
    ')',
  );
}

/** `requires (parameters) {…}`: what it asks for says nothing of the code. */
function readRequirements(reader: Reader): Node {
  if (reader.take('rQ')) {
    readParameters(reader, () => reader.peek() === '_');
    reader.expect('_');
  } else reader.expect('rq');
  reader.untilEnd(() => {
    if (reader.take('T')) return reader.grammar.type(reader);
    if (!reader.take('Q')) reader.expect('X');
    const expression = readExpression(reader);
    reader.take('N');
    if (reader.take('R')) readTemplateArgsIfAny(reader, reader.grammar.name(reader));
    return expression;
  });
  return text('requires {…}');
}

function readFunctionParameter(reader: Reader): Node {
  if (reader.take('fL')) {
    reader.digits();
    reader.expect('p');
  } else {
    reader.expect('fp');
  }
  if (reader.take('T')) return text('this');
  while (/[rVK]/.test(reader.peek())) reader.at++;
  return text(`{parm#${reader.index() + 1}}`);
}

/** `sr` type name, `srN` type name… `E` name, and without a type `sr` name… `E` name. */
function readScoped(reader: Reader): Node {
  const isLong = reader.take('N');
  const isPlain = /[0-9]/.test(reader.peek());
  let scope = isPlain ? readTemplateArgsIfAny(reader, readSourceName(reader)) : readScopeType(reader);
  if (isLong || isPlain) {
    while (!reader.take('E')) {
      scope = { kind: 'nested', scope, name: readTemplateArgsIfAny(reader, readSourceName(reader)) };
    }
  }
  const name = readPrimary(reader);
  if (!name) throw new NotDemangled('no name');
  return { kind: 'nested', scope, name };
}

function readScopeType(reader: Reader): Node {
  if (reader.peek() === 'T') {
    const parameter = reader.substitute(readTemplateParameter(reader));
    if (reader.peek() !== 'I') return parameter;
    return reader.substitute(readTemplateArgsIfAny(reader, parameter));
  }
  if (reader.peek() === 'D') return reader.substitute(readDecltype(reader));
  if (reader.peek() === 'S' && reader.peek(1) !== 't') {
    return readTemplateArgsIfAny(reader, readSubstitution(reader));
  }
  return reader.grammar.type(reader);
}

/** `L` type value `E`, or `L_Z` encoding `E`. In an expression it has parentheses, so it is no mere text. */
export function readLiteral(reader: Reader): Node {
  reader.expect('L');
  if (reader.take('_Z')) {
    const encoding = reader.grammar.constantFunction(reader);
    reader.expect('E');
    return encoding;
  }
  const type = reader.grammar.type(reader);
  const start = reader.at;
  const end = reader.source.indexOf('E', start);
  if (end < 0) throw new NotDemangled('no literal');
  const value = reader.source.slice(start, end).replace(/^n/, '-');
  reader.at = end + 1;
  if (type.kind !== 'text') return sequence('(', type, ')', value);
  if (type.text === 'bool' && /^[01]$/.test(value)) return sequence(value === '1' ? 'true' : 'false');
  if (value === '' && type.text === 'decltype(nullptr)') return type;
  const suffix = LITERAL_SUFFIXES[type.text];
  if (suffix !== undefined) return sequence(value + suffix);
  const isFloat = /^(float|double|long double|__float128)$/.test(type.text);
  return sequence(`(${type.text})${isFloat ? `[${value}]` : value}`);
}

export function readDecltype(reader: Reader): Node {
  if (!reader.take('Dt')) reader.expect('DT');
  const expression = readExpression(reader);
  reader.expect('E');
  return sequence('decltype (', expression, ')');
}
