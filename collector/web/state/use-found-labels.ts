import { type AttributeLabel, isLinkLabel } from '../../../common/profile/filters/filter.ts';
import type { LabelsAnswer } from '../../api/types.ts';
import { ask } from './questions.ts';
import type { FoundLabel, UrlState } from './url-state.ts';
import { useAnswer } from './use-answer.ts';

/** Those that samples of the shown time have, whatever the filter. */
export function useFoundLabels(state: UrlState, isLive: boolean): FoundLabel[] {
  const { value: found } = useAnswer<LabelsAnswer>(ask('labels', { ...state, where: '' }), isLive);
  const attributes = (found?.attributes ?? []).map((name): AttributeLabel => `@${name}`);
  return [...(found?.labels ?? []).filter(isLinkLabel), ...attributes];
}
