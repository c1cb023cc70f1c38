import { parseTransforms, type Transform } from '../../common/profile/transform-list.ts';
import { formatFilter } from './questions.ts';

interface Properties {
  transform: string;
  onTransform(transform: string): void;
}

const MINE = 'only=mine';

/** The transforms in force, each of which can be taken back. */
export function TransformBar({ transform, onTransform }: Properties) {
  const list = readTransforms(transform).map(({ name, ...rest }) => formatFilter([{ key: name, ...rest }]));
  const isMine = list.includes(MINE);
  return (
    <div class="transforms">
      <button
        type="button"
        class="button"
        aria-pressed={isMine}
        title="takes out the kernel, runtimes and their libraries"
        onClick={() =>
          onTransform((isMine ? list.filter((each) => each !== MINE) : [...list, MINE]).join(' '))
        }
      >
        My code only
      </button>
      <ul class="chips" aria-label="Transforms">
        {list.map((each, i) =>
          each === MINE ? null : (
            <li key={`${i} ${each}`} class="chip">
              <span>{each}</span>
              <button
                type="button"
                aria-label={`take back ${each}`}
                onClick={() => onTransform(list.filter((_, other) => other !== i).join(' '))}
              >
                ×
              </button>
            </li>
          ),
        )}
      </ul>
    </div>
  );
}

/** None for a text that can't be read, as the collector will say. */
function readTransforms(text: string): Transform[] {
  try {
    return parseTransforms(text);
  } catch {
    return [];
  }
}
