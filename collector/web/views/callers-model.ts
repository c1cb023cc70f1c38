import { buildModel, type FlameModel } from '../../../common/flame/flame-model.ts';
import type { TreeColumns } from '../../../common/flame/tree-answer.ts';
import type { CallersAnswer } from '../../api/types.ts';

/** Paths begin at the root, as the API's do, though it is not drawn. */
export function modelOf(answer: CallersAnswer, columns: TreeColumns): FlameModel {
  const { fromMs, toMs, type, samples, allSamples, cpuNanos, cpus } = answer;
  const basis = { fromMs, toMs, type, samples, allSamples, cpuNanos, cpus, timeline: [] };
  const tree = withoutRoot(columns);
  const model = buildModel({ ...basis, ...tree });
  if (tree.nodes === columns.nodes) return model;
  const { low, high } = buildModel({ ...basis, ...columns }).paths;
  return { ...model, paths: { low: low.subarray(1), high: high.subarray(1) } };
}

/** The root says nothing here, where there is one function below it; several may have the name. */
function withoutRoot({ nodes, ...rest }: TreeColumns): TreeColumns {
  const { parent, frame, self } = nodes;
  if (parent.length < 2 || parent.lastIndexOf(0) !== 1) return { nodes, ...rest };
  return {
    ...rest,
    nodes: {
      parent: parent.slice(1).map((above) => Math.max(0, above - 1)),
      frame: frame.slice(1),
      self: self.slice(1),
    },
  };
}
