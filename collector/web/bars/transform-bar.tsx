import { IDLE_MODES, type IdleMode } from '../../../common/profile/filters/idle-pools.ts';
import { libraryOf, RUNTIMES, runtimeLabel } from '../../../common/profile/filters/my-code.ts';
import type { Transform, TransformName } from '../../../common/profile/filters/transform-list.ts';
import { LOCK, OFF_CPU, WALL_TIME } from '../../../common/profile/model/thread-types.ts';
import { formatFilter } from '../state/questions.ts';
import { readTransforms } from '../state/terms.ts';

/** Types that idle threads are in. */
const WAITING: readonly string[] = [OFF_CPU, WALL_TIME, LOCK];

interface Properties {
  transform: string;
  /** Of the samples that are shown. */
  type: string;
  onTransform(transform: string): void;
}

/** The transforms in force, each of which can be taken back. */
export function TransformBar({ transform, type, onTransform }: Properties) {
  const list = readTransforms(transform);
  const valuesOf = (wanted: TransformName): string =>
    list.find(({ name }) => name === wanted)?.values.join() ?? '';
  const others = list.filter(({ name }) => name !== 'only' && name !== 'idle');
  // idle threads are told by frames that the others may take out
  const set = (idle: string, mine: string): void =>
    onTransform([...term('idle', idle), ...others.map(format), ...term('only', mine)].join(' '));
  const [idle, mine] = [valuesOf('idle'), valuesOf('only')];
  const isWaiting = WAITING.includes(type) || idle !== '';
  return (
    <div class="transforms">
      {isWaiting && <IdleThreads values={idle} onValues={(values) => set(values, mine)} />}
      <MyCode values={mine} onValues={(values) => set(idle, values)} />
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

interface ValuesProperties {
  /** Of `idle=` or `only=`, '' for none. */
  values: string;
  onValues(values: string): void;
}

const IDLE_LABELS: Record<IdleMode, string> = { fold: 'folded', hide: 'hidden' };

/** What becomes of threads that wait for work. */
function IdleThreads({ values, onValues }: ValuesProperties) {
  return (
    <label title="pools and event loops that wait for work: of libuv, Go, Java, Python, and of C and C++ with conditions">
      Idle threads{' '}
      <select value={values} onChange={(event) => onValues(event.currentTarget.value)}>
        <option value="">shown</option>
        {IDLE_MODES.map((mode) => (
          <option key={mode} value={mode}>
            {IDLE_LABELS[mode]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** On and off, and while it is on of which runtimes. */
function MyCode({ values, onValues }: ValuesProperties) {
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

const term = (name: string, values: string): string[] => (values === '' ? [] : [`${name}=${values}`]);
const format = ({ name, ...rest }: Transform): string => formatFilter([{ key: name, ...rest }]);
