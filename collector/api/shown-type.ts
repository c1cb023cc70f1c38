/** The type of samples that a request asks for. */
import {
  CPU_ALIAS,
  findType,
  isCpuType,
  type ProfileType,
  typeKey,
  typeNames,
  UnknownTypeError,
  valueKind,
} from '../../common/profile/profile-type.ts';
import type { Store } from '../store/store.ts';
import { CPU_TYPE } from '../store/stored-type.ts';
import { RequestError } from './parameters.ts';
import type { TypeAnswer } from './types.ts';

const EVERYTHING = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };

/**
 * The type that `type` names: CPU samples where it is missing, as if there were some.
 *
 * @throws RequestError that lists those that are there
 */
export async function readType(name: string | null, store: Pick<Store, 'types'>): Promise<ProfileType> {
  if (name === null || name === '' || name === CPU_ALIAS) return CPU_TYPE;
  const types = await store.types(EVERYTHING);
  try {
    return types[findType(types, name)]!;
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
export function describeTypes(types: readonly ProfileType[]): { type: ProfileType; answer: TypeAnswer }[] {
  const names = typeNames(types);
  return types
    .map((type, i) => ({ type, answer: describeType(type, isCpuType(type) ? CPU_ALIAS : names[i]!) }))
    .sort((a, b) => rank(a.type) - rank(b.type) || (a.answer.name < b.answer.name ? -1 : 1));
}

const rank = (type: ProfileType): number => (isCpuType(type) ? 0 : 1);

/** A type of a store, named as in the list of all of its types. */
export async function describeShown(type: ProfileType, store: Pick<Store, 'types'>): Promise<TypeAnswer> {
  if (isCpuType(type)) return describeType(type, CPU_ALIAS);
  const key = typeKey(type);
  const found = describeTypes(await store.types(EVERYTHING)).find((each) => typeKey(each.type) === key);
  return found?.answer ?? describeType(type, key);
}
