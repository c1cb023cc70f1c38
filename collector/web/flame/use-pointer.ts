import { useState } from 'preact/hooks';
import { type FlameModel, nodeAt, nodeAtPath, pathKeyOf } from '../../../common/flame/flame-model.ts';
import { rowAt, type Scene } from './flame-painter.ts';

/** The box under the pointer: kept by path, so that it survives a refresh. */
interface Hovered {
  path: string;
  at: { x: number; y: number };
}

type View = Pick<Scene, 'from' | 'to' | 'scrollTop' | 'width' | 'height' | 'isFlipped' | 'rows'>;

export interface PointerState {
  /** The hovered box, if there is one. */
  node: number | undefined;
  /** Where the pointer is, from the canvas's corner. */
  at: { x: number; y: number } | undefined;
  nodeUnder(event: MouseEvent): number | undefined;
  move(event: MouseEvent): void;
  leave(): void;
}

export function usePointer(model: FlameModel, view: View): PointerState {
  const { from, to, width } = view;
  const [hovered, setHovered] = useState<Hovered>();
  const position = (event: MouseEvent): { x: number; y: number } => {
    const bounds = (event.currentTarget as Element).getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  };
  const nodeUnder = (event: MouseEvent): number | undefined => {
    const { x, y } = position(event);
    return nodeAt(model, rowAt(view, y), from + (x / width) * (to - from));
  };
  return {
    node: hovered && nodeAtPath(model, hovered.path),
    at: hovered?.at,
    nodeUnder,
    move: (event) => {
      const node = nodeUnder(event);
      setHovered(node === undefined ? undefined : { path: pathKeyOf(model, node), at: position(event) });
    },
    leave: () => setHovered(undefined),
  };
}
