import { CPU_SAMPLES, formatterOf, isCpu } from '../../../common/flame/shown-type.ts';
import { LOCK, OFF_CPU, THREAD_TIME, WALL_TIME } from '../../../common/profile/model/thread-types.ts';
import type { TypesAnswer } from '../../api/types.ts';

interface Properties {
  types: TypesAnswer['types'];
  /** There may be more than the filter leaves. */
  isFiltered: boolean;
  /** Name of the one that is shown. */
  shown: string;
  onType(name: string): void;
}

/** Of what kind the samples are that everything on the page is about; there only where there are several. */
export function TypeChoice({ types, isFiltered, shown, onType }: Properties) {
  const isThere = types.some(({ name }) => name === shown);
  // also where nothing is there yet: what is shown comes with the first samples
  const isUsual = isThere || (types.length === 0 && shown === CPU_SAMPLES.name && !isFiltered);
  if (types.length < 2 && isUsual) return null;
  return (
    <label class="type-choice">
      Show{' '}
      <select
        aria-label="Type of samples"
        value={shown}
        onChange={(event) => onType(event.currentTarget.value)}
      >
        {!isThere && <option value={shown}>{nameOf(shown)}: none</option>}
        {types.map((type) => (
          <option key={type.name} value={type.name} title={titleOf(type)}>
            {labelOf(type)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Of the agent's own types. */
const NAMES: Readonly<Record<string, string>> = {
  [OFF_CPU]: 'Waiting',
  [LOCK]: 'Waiting for locks',
  [WALL_TIME]: 'Wall',
  [THREAD_TIME]: 'Threads by state',
};

/** Of a type of which there is nothing. */
const nameOf = (name: string): string => (name === 'cpu' ? 'CPU' : (NAMES[name] ?? name));

/** The sample type alone says most; two of one name are told apart by the whole name. */
function labelOf(type: TypesAnswer['types'][number]): string {
  if (isCpu(type)) return `CPU: ${formatterOf(type).amount(type.total)}`;
  const name = NAMES[type.name] ?? (type.name.includes(':') ? type.name : type.type);
  return `${name}: ${formatterOf(type).amount(type.total)}`;
}

const titleOf = ({ kind, unit }: TypesAnswer['types'][number]): string =>
  kind === 'level' ? `${unit}, the last value of each process` : `${unit}, summed over the whole timeline`;
