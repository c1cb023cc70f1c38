/** The type of samples that a request asks for. */
import type { TypeAnswer } from '../../common/flame/tree-answer.ts';
import {
  CPU_ALIAS,
  findType,
  isCpuType,
  type ProfileType,
  typeNames,
  UnknownTypeError,
  valueKind,
} from '../../common/profile/model/profile-type.ts';
import type { Store } from '../store/store.ts';
import { CPU_TYPE } from '../store/stored-type.ts';
import { RequestError } from './parameters.ts';

const EVERYTHING = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };

/** A type of a store, and what answers say of it. */
export interface DescribedType {
  type: ProfileType;
  answer: TypeAnswer;
}

/**
 * The type that `type` names: CPU samples where it is missing, as if there were some.
 *
 * @throws RequestError that lists those that are there
 */
export async function readType(name: string | null, store: Pick<Store, 'types'>): Promise<DescribedType> {
  if (name === null || name === '' || name === CPU_ALIAS)
    return { type: CPU_TYPE, answer: describeType(CPU_TYPE, CPU_ALIAS) };
  // named as among all that there are, so that a name says the same in each answer
  const types = describeTypes(await store.types(EVERYTHING));
  try {
    const found = findType(
      types.map(({ type }) => type),
      name,
    );
    return types[found]!;
  } catch (error) {
    if (!(error instanceof UnknownTypeError)) throw error;
    throw new RequestError(`type is "${name}": ${error.message}`);
  }
}

/** @param name that tells it from all others */
const describeType = (type: ProfileType, name: string): TypeAnswer => {
  const kind = valueKind(type);
  return {
    name,
    type: type.sampleType.type,
    unit: type.sampleType.unit,
    periodType: type.periodType.type,
    periodUnit: type.periodType.unit,
    kind,
    shown: kind === 'level' ? 'last' : 'sum',
  };
};

/** CPU samples first, the others by name. */
export function describeTypes(types: readonly ProfileType[]): DescribedType[] {
  const names = typeNames(types);
  return types
    .map((type, i) => ({ type, answer: describeType(type, isCpuType(type) ? CPU_ALIAS : names[i]!) }))
    .sort((a, b) => rank(a.type) - rank(b.type) || (a.answer.name < b.answer.name ? -1 : 1));
}

const rank = (type: ProfileType): number => (isCpuType(type) ? 0 : 1);
