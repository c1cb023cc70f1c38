import { useEffect, useRef, useState } from 'preact/hooks';
import type { FlameModel } from '../../../common/flame/flame-model.ts';

const DURATION_MS = 160;

interface Span {
  from: number;
  to: number;
}

/**
 * The visible part of the x axis: glides to a newly zoomed box, jumps when new data arrive or when the user
 * asked for reduced motion.
 */
export function useZoomedRange(model: FlameModel, root: number): Span {
  const target: Span = { from: model.x[root]!, to: model.x[root]! + model.total[root]! };
  const [, redraw] = useState(0);
  const shown = useRef(target);
  const glide = useRef<{ start: Span; startMs: number } | undefined>(undefined);
  const previous = useRef({ model, root });
  if (previous.current.model !== model) {
    glide.current = undefined;
  } else if (previous.current.root !== root && !matchMedia('(prefers-reduced-motion: reduce)').matches) {
    glide.current = { start: shown.current, startMs: performance.now() };
  }
  previous.current = { model, root };
  shown.current = glide.current === undefined ? target : between(glide.current, target);
  if (shown.current.from === target.from && shown.current.to === target.to) glide.current = undefined;
  useEffect(() => {
    if (glide.current === undefined) return;
    const request = requestAnimationFrame(() => redraw((count) => count + 1));
    return () => cancelAnimationFrame(request);
  });
  return shown.current;
}

function between({ start, startMs }: { start: Span; startMs: number }, target: Span): Span {
  const progress = Math.min(1, (performance.now() - startMs) / DURATION_MS);
  if (progress === 1) return target;
  const eased = 1 - (1 - progress) ** 3;
  return {
    from: start.from + (target.from - start.from) * eased,
    to: start.to + (target.to - start.to) * eased,
  };
}
