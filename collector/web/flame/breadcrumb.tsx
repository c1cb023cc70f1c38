import { ancestors, type FlameModel, nameOf, pathKeyOf } from '../../../common/flame/flame-model.ts';
import { elideMiddle } from '../../../common/flame/format.ts';

const HEAD = 2;
const TAIL = 3;
const MAX_LENGTH = 42;
/** A name that is no longer keeps its room; the others share what is left. */
const SHORT_LENGTH = 16;

interface Properties {
  model: FlameModel;
  root: number;
  onZoom(node: number): void;
}

/** The way from the whole graph to the zoomed box; a long one without its middle. */
export function Breadcrumb({ model, root, onZoom }: Properties) {
  const path = ancestors(model, root);
  const isLong = path.length > HEAD + TAIL + 1;
  const shown = isLong ? [...path.slice(0, HEAD), undefined, ...path.slice(-TAIL)] : path;
  return (
    <nav class="breadcrumb" aria-label="Zoomed to">
      <ol>
        {shown.map((node) =>
          node === undefined ? (
            <li key="gap" class="breadcrumb-gap" title={`${path.length - HEAD - TAIL} more callers`}>
              …
            </li>
          ) : (
            <li
              key={pathKeyOf(model, node)}
              class={nameOf(model, node).length <= SHORT_LENGTH ? 'breadcrumb-short' : undefined}
            >
              <button
                type="button"
                aria-current={node === root ? 'true' : undefined}
                title={nameOf(model, node)}
                onClick={() => onZoom(node)}
              >
                {elideMiddle(nameOf(model, node), MAX_LENGTH)}
              </button>
            </li>
          ),
        )}
      </ol>
    </nav>
  );
}
