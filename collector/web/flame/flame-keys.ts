import { type FlameModel, functionOf } from '../../../common/flame/flame-model.ts';
import type { FunctionRef } from '../state/function-actions.ts';
import { flipKey, walk } from './keyboard.ts';

/** What keys do to whoever shows the graph. */
export interface KeyTargets {
  model: FlameModel;
  /** Zoomed box, 0 for the whole graph. */
  root: number;
  /** Callees grow up, from the bottom. */
  isFlipped: boolean;
  onZoom(node: number): void;
  /** Double click and O: the function by itself. */
  onOpen?(name: string): void;
  /** Shift with a click, and S: its source. */
  onSource?(target: FunctionRef): void;
}

/** And to the graph itself. */
interface Actions {
  choose(node: number): void;
  chooseMatch(step: 1 | -1): void;
  openMenu(node: number): void;
}

/** What the keys do in a flame graph; `selected` is where arrow keys start. */
export function handleKeys(
  { model, root, isFlipped, onZoom, onOpen, onSource }: KeyTargets,
  selected: number | undefined,
  { choose, chooseMatch, openMenu }: Actions,
) {
  const onChosen: Record<string, (node: number) => void> = {
    o: (node) => {
      const name = functionOf(model, node)?.name;
      if (name !== undefined) onOpen?.(name);
    },
    s: (node) => {
      const target = functionOf(model, node);
      if (target !== undefined) onSource?.(target);
    },
    m: openMenu,
    ContextMenu: openMenu,
  };
  return (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    if (key === 'Enter') onZoom(selected ?? root);
    else if (key === 'Backspace') onZoom(model.parent[root]!);
    else if (key === 'n' || key === 'N') chooseMatch(key === 'n' ? 1 : -1);
    else if (selected !== undefined && onChosen[key] !== undefined) onChosen[key](selected);
    else {
      const next = walk(model, selected ?? root, root, isFlipped ? flipKey(key) : key);
      if (next === undefined) return;
      choose(selected === undefined ? root : next);
    }
    event.preventDefault();
  };
}
