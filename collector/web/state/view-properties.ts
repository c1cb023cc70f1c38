import type { TimelineAnswer } from '../../api/types.ts';
import type { MenuRequest } from './function-menu.tsx';
import type { UrlState } from './url-state.ts';

/** What every view gets. */
export interface ViewProperties {
  state: UrlState;
  isLive: boolean;
  /** The shown time in words. */
  rangeTitle: string;
  /** The timeline above. */
  timeline: TimelineAnswer;
  /** Grows by one for each wish to go to the next match. */
  jumps: number;
  change(change: Partial<UrlState>): void;
  announce(text: string): void;
  onMenu(request: MenuRequest): void;
  onSearchNote(note: SearchNote): void;
}

/** What a search found, or why its expression is none. */
export interface SearchNote {
  text: string;
  isBad: boolean;
}
