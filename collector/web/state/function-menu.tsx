import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { elideMiddle } from '../../../common/flame/format.ts';
import { actionsOn, type FunctionRef } from './function-actions.ts';
import type { UrlState } from './url-state.ts';

export interface MenuRequest {
  target: FunctionRef;
  /** In the viewport. */
  at: { x: number; y: number };
}

interface Properties extends MenuRequest {
  state: UrlState;
  change(change: Partial<UrlState>): void;
  onClose(): void;
}

const MARGIN = 8;

/** What can be done with a function; gives the focus back to where it was. */
export function FunctionMenu({ target, at, state, change, onClose }: Properties) {
  const list = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState(at);
  useLayoutEffect(() => {
    const { offsetWidth, offsetHeight } = list.current!;
    setPlace({
      x: Math.max(MARGIN, Math.min(at.x, innerWidth - offsetWidth - MARGIN)),
      y: Math.max(MARGIN, Math.min(at.y, innerHeight - offsetHeight - MARGIN)),
    });
  }, [at.x, at.y]);
  useEffect(() => {
    const before = document.activeElement;
    list.current!.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const onPointer = (event: Event): void => {
      if (!list.current?.contains(event.target as Node)) onClose();
    };
    addEventListener('pointerdown', onPointer);
    return () => {
      removeEventListener('pointerdown', onPointer);
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    const items = [...list.current!.querySelectorAll<HTMLElement>('[role=menuitem]')];
    const index = items.indexOf(document.activeElement as HTMLElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === 'Escape' || event.key === 'Tab') onClose();
    else if (next !== undefined) items[(next + items.length) % items.length]!.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={list}
      class="menu"
      role="menu"
      tabIndex={-1}
      aria-label={`Actions on ${target.name}`}
      style={{ left: `${place.x}px`, top: `${place.y}px` }}
      onKeyDown={onKeyDown}
    >
      <p class="menu-title" role="presentation">
        {elideMiddle(target.name, 46)}
      </p>
      {actionsOn(target, state).map((action) => (
        <button
          key={action.title}
          type="button"
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            onClose();
            if (action.change === undefined) void navigator.clipboard?.writeText(target.name);
            else change(action.change);
          }}
        >
          {action.title}
        </button>
      ))}
    </div>
  );
}
