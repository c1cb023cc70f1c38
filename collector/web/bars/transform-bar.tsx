import { libraryOf, RUNTIMES, runtimeLabel } from '../../../common/profile/filters/my-code.ts';
import type { Transform } from '../../../common/profile/filters/transform-list.ts';
import { formatFilter } from '../state/questions.ts';
import { readTransforms } from '../state/terms.ts';

interface Properties {
  transform: string;
  onTransform(transform: string): void;
}

/** The transforms in force, each of which can be taken back. */
export function TransformBar({ transform, onTransform }: Properties) {
  const list = readTransforms(transform);
  const mine = list.find(({ name }) => name === 'only');
  const others = list.filter(({ name }) => name !== 'only');
  const setMine = (values: string): void =>
    onTransform([...others.map(format), ...(values === '' ? [] : [`only=${values}`])].join(' '));
  return (
    <div class="transforms">
      <MyCode values={mine?.values.join() ?? ''} onValues={setMine} />
      <ul class="chips" aria-label="Transforms">
        {others.map((each, i) => (
          <li key={`${i} ${format(each)}`} class="chip">
            <span>{format(each)}</span>
            <button
              type="button"
              aria-label={`take back ${format(each)}`}
              onClick={() =>
                onTransform(
                  list
                    .filter((other) => other !== each)
                    .map(format)
                    .join(' '),
                )
              }
            >
              ×
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface MyCodeProperties {
  /** Of `only=`, '' for none. */
  values: string;
  onValues(values: string): void;
}

/** On and off, and while it is on of which runtimes. */
function MyCode({ values, onValues }: MyCodeProperties) {
  const isPreset = values === 'mine' || RUNTIMES.some((runtime) => runtime === values);
  return (
    <span class="my-code">
      <button
        type="button"
        class="button"
        aria-pressed={values !== ''}
        title="hides frames of the kernel, of runtimes and of libraries"
        onClick={() => onValues(values === '' ? 'mine' : '')}
      >
        My code only
      </button>
      {values !== '' && (
        <select
          aria-label="My code only, of"
          value={values}
          onChange={(event) => onValues(event.currentTarget.value)}
        >
          <option value="mine">all code</option>
          {RUNTIMES.map((runtime) => (
            <option key={runtime} value={runtime} title={`without ${libraryOf(runtime)}`}>
              {runtimeLabel(runtime)}
            </option>
          ))}
          {!isPreset && <option value={values}>{values}</option>}
        </select>
      )}
    </span>
  );
}

const format = ({ name, ...rest }: Transform): string => formatFilter([{ key: name, ...rest }]);
