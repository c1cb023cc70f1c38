import type { Diagnosis } from './diagnose.ts';

interface Properties {
  diagnosis: Diagnosis;
  /** Offered where a filter hides everything. */
  onShowAll: (() => void) | undefined;
}

/** In place of the picture: what is missing, and what to do about it. */
export function EmptyState({ diagnosis, onShowAll }: Properties) {
  const { condition, headline, sentences, command } = diagnosis;
  return (
    <section class={`empty empty-${condition}`} role="status">
      <div class="empty-mark" aria-hidden="true">
        <i />
        <i />
        <i />
      </div>
      <h2>{headline}</h2>
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {command !== '' && <code class="empty-command">{command}</code>}
      {onShowAll !== undefined && (
        <button type="button" class="button" onClick={onShowAll}>
          Show everything
        </button>
      )}
    </section>
  );
}
