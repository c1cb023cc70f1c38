/** In place of a view whose first answer is on its way; seen only when that takes a while. */
export function Waiting() {
  return <p class="hint waiting">Asking the collector…</p>;
}
