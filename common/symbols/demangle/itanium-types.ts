/** Types and template arguments of the Itanium C++ ABI. */
import {
  readParameters,
  readSubstitution,
  readTemplateArgsIfAny,
  readTemplateParameter,
} from './itanium-arguments.ts';
import { readDecltype, readExpression } from './itanium-expressions.ts';
import { readQualifiers, readSourceName } from './itanium-identifiers.ts';
import { type Node, sequence, text } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { BUILTIN_TYPES, D_TYPES } from './itanium-tables.ts';

const SIGNS: Readonly<Record<string, '*' | '&' | '&&'>> = { P: '*', R: '&', O: '&&' };

export function readType(reader: Reader): Node {
  reader.budget.enter();
  const node = readTypeHere(reader);
  reader.budget.leave();
  return node;
}

function readTypeHere(reader: Reader): Node {
  const builtin = BUILTIN_TYPES[reader.peek()];
  if (builtin) {
    reader.at++;
    return text(builtin);
  }
  if (reader.peek() === 'S' && reader.peek(1) !== 't') return readSubstitutedType(reader);
  if (reader.peek() === 'D' && D_TYPES[reader.peek(1)]) {
    reader.at += 2;
    return text(D_TYPES[reader.source[reader.at - 1]!]!);
  }
  if (reader.take('DF')) return readFloat(reader);
  return reader.substitute(readCompoundType(reader));
}

/** `S_` alone is a type that has its number already; with arguments it is a new one. */
function readSubstitutedType(reader: Reader): Node {
  const type = readSubstitution(reader);
  return reader.peek() === 'I' ? reader.substitute(readTemplateArgsIfAny(reader, type)) : type;
}

function readFloat(reader: Reader): Node {
  const bits = reader.digits();
  if (reader.take('x')) return text(`_Float${bits}x`);
  if (reader.take('b')) return text('std::bfloat16_t');
  reader.expect('_');
  return text(`_Float${bits}`);
}

function readCompoundType(reader: Reader): Node {
  const next = reader.peek();
  const sign = SIGNS[next];
  if (sign) {
    reader.at++;
    return { kind: 'pointer', child: readType(reader), sign };
  }
  switch (next) {
    case 'r':
    case 'V':
    case 'K':
      return readQualified(reader);
    case 'F':
      return readFunction(reader, '');
    case 'A':
      return readArray(reader);
    case 'M':
      return readMemberPointer(reader);
    case 'T':
      return readParameterType(reader);
    case 'C':
    case 'G':
      reader.at++;
      return sequence(readType(reader), next === 'C' ? ' _Complex' : ' _Imaginary');
    case 'U':
      return readVendorType(reader);
    case 'u':
      reader.at++;
      return readTemplateArgsIfAny(reader, readSourceName(reader));
    case 'D':
      return readDType(reader);
    case 'N':
      return reader.grammar.nestedName(reader);
    default:
      return reader.grammar.name(reader);
  }
}

function readQualified(reader: Reader): Node {
  const qualifiers = readQualifiers(reader);
  // qualifiers of a function are those of its `this`
  if (/^(F|Do|DO|Dw|Dx)/.test(reader.source.slice(reader.at, reader.at + 2))) {
    return readFunction(reader, qualifiers);
  }
  return { kind: 'qualified', child: readType(reader), qualifiers };
}

function readFunction(reader: Reader, qualifiers: string): Node {
  let suffix = qualifiers;
  let throwing: Node | undefined;
  let exception = '';
  if (reader.take('Do')) exception = ' noexcept';
  else if (reader.take('DO')) {
    throwing = readExpression(reader);
    reader.expect('E');
  }
  reader.take('Dx');
  reader.expect('F');
  reader.take('Y');
  const result = readType(reader);
  const ends = () => reader.peek() === 'E' || /^[RO]E/.test(reader.source.slice(reader.at, reader.at + 2));
  const parameters = readParameters(reader, ends);
  if (reader.take('R')) suffix += ' &';
  else if (reader.take('O')) suffix += ' &&';
  reader.expect('E');
  const type: Node = { kind: 'function', result, parameters, suffix: suffix + exception };
  return throwing ? sequence(type, ' noexcept(', throwing, ')') : type;
}

function readArray(reader: Reader): Node {
  reader.expect('A');
  const digits = reader.digits();
  const size = digits !== '' || reader.peek() === '_' ? text(digits) : readExpression(reader);
  reader.expect('_');
  return { kind: 'array', child: readType(reader), size };
}

function readMemberPointer(reader: Reader): Node {
  reader.expect('M');
  const scope = readType(reader);
  return { kind: 'memberPointer', scope, child: readType(reader) };
}

function readParameterType(reader: Reader): Node {
  if (/[sue]/.test(reader.peek(1))) {
    const word = { s: 'struct ', u: 'union ', e: 'enum ' }[reader.peek(1)]!;
    reader.at += 2;
    return sequence(word, reader.grammar.name(reader));
  }
  const parameter = readTemplateParameter(reader);
  if (reader.peek() !== 'I' || reader.isOpenConversion) return parameter;
  reader.substitute(parameter);
  return readTemplateArgsIfAny(reader, parameter);
}

function readVendorType(reader: Reader): Node {
  if (/[lt]/.test(reader.peek(1))) return reader.grammar.name(reader);
  reader.expect('U');
  const qualifier = readTemplateArgsIfAny(reader, readSourceName(reader));
  return sequence(readType(reader), ' ', qualifier);
}

function readDType(reader: Reader): Node {
  switch (reader.peek(1)) {
    case 't':
    case 'T':
      return readDecltype(reader);
    case 'p':
      reader.at += 2;
      return { kind: 'expansion', child: readType(reader) };
    case 'v':
      return readVector(reader);
    default:
      return readFunction(reader, '');
  }
}

function readVector(reader: Reader): Node {
  reader.expect('Dv');
  const size = reader.take('_') ? readExpression(reader) : text(reader.digits());
  reader.expect('_');
  return sequence(readType(reader), ' __vector(', size, ')');
}
