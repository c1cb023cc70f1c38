import type { AttributeLabel } from '../../../common/profile/filters/filter.ts';
import type { LabelsAnswer } from '../../api/types.ts';
import { ask } from './questions.ts';
import type { UrlState } from './url-state.ts';
import { useAnswer } from './use-answer.ts';

/** Those that samples of the shown time have, whatever the filter. */
export function useAttributes(state: UrlState, isLive: boolean): AttributeLabel[] {
  const { value: found } = useAnswer<LabelsAnswer>(ask('labels', { ...state, where: '' }), isLive);
  return (found?.attributes ?? []).map((name): AttributeLabel => `@${name}`);
}
