import { useEffect, useState } from 'preact/hooks';
import { FilterError, parseFilter } from '../../../common/profile/filters/filter.ts';
import { formatFilter } from '../state/questions.ts';
import { readTerms } from '../state/terms.ts';

interface Properties {
  where: string;
  onWhere(where: string): void;
}

/** The filter as text that can be typed, and as terms that can be taken out. */
export function FilterBar({ where, onWhere }: Properties) {
  const [text, setText] = useState(where);
  useEffect(() => setText(where), [where]);
  const problem = problemOf(text);
  const terms = readTerms(where);
  const apply = (event: Event): void => {
    event.preventDefault();
    if (problem === '') onWhere(text.trim());
  };
  return (
    <form class="filter" aria-label="Filter" onSubmit={apply}>
      <input
        aria-label="Filter samples"
        aria-invalid={problem !== ''}
        placeholder="Filter: process=node thread~^worker cpu!=0"
        spellcheck={false}
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={apply}
      />
      {problem !== '' && (
        <p class="filter-problem" role="alert">
          {problem}
        </p>
      )}
      {terms.length > 0 && (
        <ul class="chips" aria-label="Terms of the filter">
          {terms.map((term, i) => {
            const own = formatFilter([term]);
            return (
              <li key={own} class="chip">
                <span>{own}</span>
                <button
                  type="button"
                  aria-label={`remove ${own}`}
                  onClick={() => onWhere(formatFilter(terms.filter((_, other) => other !== i)))}
                >
                  ×
                </button>
              </li>
            );
          })}
        </ul>
      )}
    </form>
  );
}

function problemOf(text: string): string {
  try {
    parseFilter(text);
    return '';
  } catch (error) {
    if (error instanceof FilterError) return error.message;
    throw error;
  }
}
