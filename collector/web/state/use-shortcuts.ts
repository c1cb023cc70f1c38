import { useEffect } from 'preact/hooks';
import { RANGES } from './url-state.ts';

export interface Shortcuts {
  search(): void;
  help(): void;
  pause(): void;
  view(): void;
  /** Index into RANGES. */
  range(index: number): void;
  escape(): void;
}

/** Keys that work anywhere on the page, except while text is typed or a dialog is open. */
export function useShortcuts(actions: Shortcuts): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const { target } = event;
      const isField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
      if (target instanceof Element && target.closest('[role=menu]') !== null) return;
      const field = isField ? target : undefined;
      if (event.key === 'Escape') {
        actions.escape();
        field?.blur();
      } else if (field === undefined && !act(actions, event.key)) return;
      else if (field !== undefined) return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
}

function act(actions: Shortcuts, key: string): boolean {
  const index = Number(key) - 1;
  if (key === '/') actions.search();
  else if (key === '?') actions.help();
  else if (key === 'p' || key === 'P') actions.pause();
  else if (key === 't' || key === 'T') actions.view();
  else if (RANGES[index] !== undefined) actions.range(index);
  else return false;
  return true;
}
