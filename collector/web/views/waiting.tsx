/** In place of a view whose first answer is on its way, seen only when that takes a while; or is missing, and why. */
export function Waiting({ error }: { error?: string | undefined }) {
  if (error === undefined) return <p class="hint waiting">Loading…</p>;
  return (
    <p class="hint" role="status">
      Nothing to show yet: {error}. Trying again every 2 seconds.
    </p>
  );
}
