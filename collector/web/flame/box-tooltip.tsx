import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type FlameModel, kindOf, nameOf } from '../../../common/flame/flame-model.ts';
import { formatDuration, formatPoints, formatShare } from '../../../common/flame/format.ts';
import { kindLabel } from '../../../common/flame/kinds.ts';
import { formatterOf, isCpu } from '../../../common/flame/shown-type.ts';
import { ApproximateJava } from '../state/approximate-java.ts';
import { cpuSeconds } from './describe.ts';
import { sharesOf } from './diff-model.ts';
import { ROW_HEIGHT } from './flame-painter.ts';
import { KindSwatch } from './kind-swatch.tsx';

/** Between pointer and tooltip, in CSS pixels. */
const MARGIN = 14;

interface Properties {
  model: FlameModel;
  node: number;
  root: number;
  /** The pointer, or the box that the keyboard chose. */
  anchor: { x: number; y: number } | { left: number; top: number; width: number } | undefined;
  bounds: { width: number; height: number };
}

/** Beside the pointer, inside the graph; assistive technology gets the same by announcement. */
export function BoxTooltip({ model, node, root, anchor, bounds }: Properties) {
  const element = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const isJavaApproximate = useContext(ApproximateJava);
  useLayoutEffect(() => {
    const { offsetWidth, offsetHeight } = element.current!;
    if (offsetWidth !== size.width || offsetHeight !== size.height) {
      setSize({ width: offsetWidth, height: offsetHeight });
    }
  });
  if (anchor === undefined) return null;
  const { left, top } = 'x' in anchor ? besidePointer(anchor, size, bounds) : belowBox(anchor, size, bounds);
  const kind = kindOf(model, node);
  const frame = model.frame[node]!;
  return (
    <div
      ref={element}
      class="tooltip"
      aria-hidden="true"
      style={{ transform: `translate(${left}px, ${top}px)` }}
    >
      <div class="tooltip-name">{nameOf(model, node)}</div>
      <div class="tooltip-kind">
        <KindSwatch kind={kind} />{' '}
        {kind === 'other' ? 'many small boxes: zoom in to see them' : kindLabel(kind)}
      </div>
      {kind === 'process' && model.self[node]! > 0 && (
        <div class="tooltip-kind">
          {formatterOf(model.type).of(model.self[node]!)} are in no frame: all of their code is hidden, or
          their stack is not known
        </div>
      )}
      {model.mappings[frame] !== '' && <div class="tooltip-file">{model.mappings[frame]}</div>}
      {model.files[frame] !== '' && <div class="tooltip-file">{model.files[frame]}</div>}
      {kind === 'jvm' && isJavaApproximate && (
        <div class="tooltip-file">Lines and inlined callees are approximate: see Health</div>
      )}
      {model.comparison === undefined ? (
        <Figures model={model} node={node} root={root} />
      ) : (
        <Change type={model.type} comparison={model.comparison} node={node} />
      )}
    </div>
  );
}

interface Place {
  left: number;
  top: number;
}
interface Extent {
  width: number;
  height: number;
}

function besidePointer({ x, y }: { x: number; y: number }, size: Extent, bounds: Extent): Place {
  const fitsRight = x + MARGIN + size.width <= bounds.width;
  const fitsBelow = y + MARGIN + size.height <= bounds.height;
  return {
    left: fitsRight ? x + MARGIN : Math.max(0, x - MARGIN - size.width),
    top: fitsBelow ? y + MARGIN : Math.max(0, y - MARGIN - size.height),
  };
}

/** At the box's right end, where the fewest labels are. */
function belowBox(box: { left: number; top: number; width: number }, size: Extent, bounds: Extent): Place {
  const below = box.top + ROW_HEIGHT + MARGIN / 2;
  const above = box.top - size.height - MARGIN / 2;
  return {
    left: Math.max(0, Math.min(box.left + box.width, bounds.width - MARGIN) - size.width),
    top: below + size.height <= bounds.height ? below : Math.max(0, above),
  };
}

interface ChangeProperties {
  type: FlameModel['type'];
  comparison: NonNullable<FlameModel['comparison']>;
  node: number;
}

function Change({ type, comparison, node }: ChangeProperties) {
  const { cell } = formatterOf(type);
  const { now, base } = sharesOf(comparison, node);
  return (
    <table>
      <tbody>
        <tr>
          <th>Now</th>
          <td>{formatShare(now)}</td>
          <td>{cell(comparison.now[node]!)}</td>
        </tr>
        <tr>
          <th>Before</th>
          <td>{formatShare(base)}</td>
          <td>{cell(comparison.base[node]!)}</td>
        </tr>
        <tr>
          <th>Change</th>
          <td>{formatPoints(now - base)}</td>
          <td />
        </tr>
      </tbody>
    </table>
  );
}

function Figures({ model, node, root }: Pick<Properties, 'model' | 'node' | 'root'>) {
  const { cell, column } = formatterOf(model.type);
  const hasTime = isCpu(model.type);
  const row = (label: string, samples: number) => (
    <tr>
      <th>{label}</th>
      <td>{cell(samples)}</td>
      <td>{formatShare(samples / model.total[root]!)}</td>
      <td>{formatShare(samples / model.allSamples)}</td>
      {hasTime && <td>≈ {formatDuration(cpuSeconds(model, samples))}</td>}
    </tr>
  );
  return (
    <table>
      <thead>
        <tr>
          <th />
          <th>{column}</th>
          <th>of view</th>
          <th>of all</th>
          {hasTime && <th>CPU</th>}
        </tr>
      </thead>
      <tbody>
        {row('Total', model.total[node]!)}
        {row('Self', model.self[node]!)}
      </tbody>
    </table>
  );
}
