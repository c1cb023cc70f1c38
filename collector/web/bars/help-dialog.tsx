import { useEffect, useRef } from 'preact/hooks';

const KEYS: readonly [keys: string, meaning: string][] = [
  ['← →', 'neighbouring box'],
  ['↑ ↓', 'caller, largest callee'],
  ['Home End', 'first, last box of the row'],
  ['Page ↑ ↓', '20 levels up, down'],
  ['Enter', 'zoom to the chosen box'],
  ['Backspace', 'zoom out by one level'],
  ['Esc', 'clear the search, then the zoom'],
  ['/', 'search; Enter goes to the largest match'],
  ['N Shift+N', 'next, previous match'],
  ['M', 'menu of the chosen function'],
  ['O', 'its callers / callees'],
  ['S', 'its source, by line; or Shift and a click'],
  ['T', 'call tree, and back'],
  ['1 – 5', 'time range'],
  ['-', 'in a list of filters: exclude this'],
  ['P', 'pause / resume'],
  ['?', 'this help'],
];

export function HelpDialog({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">How to read the picture</h2>
      <p>
        Each box is a function. Its width is the share of samples in which it was on a CPU; below it is what
        it called. The first row is everything, the second the processes by name, then the frames from the
        program's start inwards; the kernel's are at the bottom of a stack. Children are in alphabetical
        order, so that a live picture stays in place: left to right is not time.
      </p>
      <p>
        Search finds names that contain a text; between slashes it is a regular expression, such as{' '}
        <code>/^sys_(read|write)/</code>. The percentage is the share of samples with a match somewhere.
      </p>
      <dl>
        {KEYS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>{keys.split(' ').map((key) => (key === '–' ? ' – ' : <kbd key={key}>{key}</kbd>))}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </dialog>
  );
}
