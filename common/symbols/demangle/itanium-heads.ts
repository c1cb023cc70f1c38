/** Template parameters that a lambda or a template template parameter declares: `<template-param-decl>` of the ABI. */
import { readTemplateArgsIfAny, skipConstraint } from './itanium-arguments.ts';
import { type Node, sequence } from './itanium-nodes.ts';
import type { Reader } from './itanium-reader.ts';
import { NotDemangled } from './output.ts';

const DECLARES = /^[yktnp]$/;

export interface TemplateHead {
  /** As they are declared. */
  head: Node[];
  /** What they are called: they have no names in a mangled one. */
  names: Node[];
}

const declaresParameter = (reader: Reader): boolean => reader.peek() === 'T' && DECLARES.test(reader.peek(1));

export function skipDeclaration(reader: Reader): boolean {
  if (!declaresParameter(reader)) return false;
  readDeclaration(reader);
  return true;
}

/** Those in front of the parameters of a lambda, which has them from there on. */
export function readTemplateHead(reader: Reader): TemplateHead {
  const found: TemplateHead = { head: [], names: [] };
  reader.lambda = found.names;
  while (declaresParameter(reader)) {
    const { before, dots, prefix } = readDeclaration(reader);
    const name = `$${prefix}${found.names.length}`;
    found.head.push(sequence(before, `${dots} ${name}`));
    found.names.push({ kind: 'text', text: name });
  }
  skipConstraint(reader);
  return found;
}

interface Declaration {
  /** All but its name. */
  before: Node;
  dots: '' | '...';
  prefix: 'T' | 'N' | 'TT';
}

function readDeclaration(reader: Reader): Declaration {
  reader.budget.enter();
  const declaration = readDeclarationHere(reader);
  reader.budget.leave();
  return declaration;
}

function readDeclarationHere(reader: Reader): Declaration {
  if (reader.take('Ty')) return { before: sequence('typename'), dots: '', prefix: 'T' };
  if (reader.take('Tk')) return { before: readConstraint(reader), dots: '', prefix: 'T' };
  if (reader.take('Tn')) return { before: reader.grammar.type(reader), dots: '', prefix: 'N' };
  if (reader.take('Tp')) return { ...readDeclaration(reader), dots: '...' };
  if (!reader.take('Tt')) throw new NotDemangled('no template parameter');
  const items = reader.untilEnd(() => {
    const { before, dots } = readDeclaration(reader);
    skipConstraint(reader);
    return sequence(before, dots);
  });
  return { before: sequence('template<', { kind: 'list', items }, '> class'), dots: '', prefix: 'TT' };
}

/** A concept, with arguments but for its first. */
const readConstraint = (reader: Reader): Node => readTemplateArgsIfAny(reader, reader.grammar.name(reader));
