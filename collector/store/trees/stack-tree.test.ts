import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StackTree } from './stack-tree.ts';

it('finds each child again, whatever the order and however large it grows', () => {
  const path = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 40 });
  fc.assert(
    fc.property(fc.array(path, { maxLength: 60 }), (paths) => {
      const tree = new StackTree();
      const nodes = new Map<string, number>();
      for (const frames of paths) {
        let node = 0;
        for (const [depth, frame] of frames.entries()) {
          const child = tree.child(node, frame);
          const key = frames.slice(0, depth + 1).join();
          expect(child).toBe(nodes.get(key) ?? nodes.size + 1);
          nodes.set(key, child);
          expect(tree.parents[child]).toBe(node);
          expect(tree.frames[child]).toBe(frame);
          node = child;
        }
      }
      expect(tree.size).toBe(nodes.size + 1);
    }),
    { numRuns: 40 },
  );
});

it('counts its bytes as it grows', () => {
  const tree = new StackTree();
  const before = tree.bytes;
  for (let frame = 0; frame < 10_000; frame++) tree.child(0, frame);
  expect(tree.bytes).toBeGreaterThan(before);
  expect(tree.bytes / tree.size).toBeLessThan(32);
});

it('takes little where nodes have one child each, as most have', () => {
  const [chain, star] = [new StackTree(), new StackTree()];
  for (let frame = 0; frame < 10_000; frame++) {
    chain.child(chain.size - 1, frame);
    star.child(0, frame);
  }
  expect(chain.bytes).toBeLessThan(0.8 * star.bytes);
});
