import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FrameKind } from '../../common/flame/frame-kind.ts';
import { parseTransforms } from '../../common/profile/filters/transform-list.ts';
import type { StackCounts } from '../store/store.ts';
import { FrameTable } from '../store/trees/frame-table.ts';
import { StackTree } from '../store/trees/stack-tree.ts';
import { buildFlameTree, type FlameTree } from './flame/flame-tree.ts';
import { invertParts } from './flame/invert.ts';
import { transformParts } from './transforms.ts';

/** `PROCESS;frame;frame@kind:mapping COUNT`, one stack a line. */
function partOf(lines: readonly string[]): StackCounts {
  const table = new FrameTable();
  const tree = new StackTree();
  const counts: number[] = [0];
  for (const line of lines) {
    const [, path, count] = /^(.+) (\d+)$/.exec(line)!;
    let node = 0;
    for (const [depth, text] of path!.split(';').entries()) {
      const [, name, kind = 'native', mapping = ''] = /^([^@]*)(?:@(\w+)(?::(.*))?)?$/.exec(text)!;
      const frame = { name: name!, file: '', mapping, kind: (depth === 0 ? 'process' : kind) as FrameKind };
      node = tree.child(node, table.intern(frame));
      counts[node] ??= 0;
    }
    counts[node]! += Number(count);
  }
  return {
    frames: table.frames,
    parents: tree.parents.slice(0, tree.size),
    nodeFrames: tree.frames.slice(0, tree.size),
    selfCounts: Float64Array.from(counts),
  };
}

function linesOf(parts: readonly StackCounts[]): string[] {
  const lines: string[] = [];
  for (const { frames, parents, nodeFrames, selfCounts } of parts) {
    const paths: string[] = [''];
    for (let node = 1; node < parents.length; node++) {
      const above = paths[parents[node]!]!;
      paths[node] = (above === '' ? '' : `${above};`) + frames[nodeFrames[node]!]!.name;
      if (selfCounts[node]! > 0) lines.push(`${paths[node]} ${selfCounts[node]}`);
    }
  }
  return lines.sort();
}

const apply = (text: string, lines: readonly string[]): string[] =>
  linesOf(transformParts([partOf(lines)], parseTransforms(text)));

describe('transforms', () => {
  it('focus: stacks begin at the outermost call, others are left out', () => {
    const lines = ['sh;main;f;g;f;h 3', 'sh;main;x 5', 'cc;f 2'];
    expect(apply('focus=f', lines)).toEqual(['cc;f 2', 'sh;f;g;f;h 3']);
  });

  it('idle: threads that wait for work are one box of their pool below the process, or left out', () => {
    const wait = 'start_thread;take_work;pthread_cond_wait';
    const lines = [
      `app;${wait};futex@kernel;schedule@kernel 5`,
      `app;${wait} 1`,
      'app;start_thread;take_work 2',
    ];
    expect(apply('idle=fold', lines)).toEqual(['app;[idle: worker] 6', 'app;start_thread;take_work 2']);
    expect(apply('idle=hide', lines)).toEqual(['app;start_thread;take_work 2']);
    expect(() => parseTransforms('idle=maybe')).toThrow('idle=fold or idle=hide');
  });

  it('hide: callees go to the caller', () => {
    const lines = ['sh;main;call;f 3', 'sh;main;call 2', 'sh;main;f 1'];
    expect(apply('hide=call', lines)).toEqual(['sh;main 2', 'sh;main;f 4']);
    expect(apply('hide~^c', lines)).toEqual(['sh;main 2', 'sh;main;f 4']);
  });

  it('collapse: callees become the function', () => {
    expect(apply('collapse=f', ['sh;main;f;g;h 3', 'sh;main;f 1', 'sh;main;g 2'])).toEqual([
      'sh;main;f 4',
      'sh;main;g 2',
    ]);
  });

  it('recursion: neighbouring calls become one', () => {
    const lines = ['sh;f;f;f;g;g 3', 'sh;f;g;f 1'];
    expect(apply('recursion=f', lines)).toEqual(['sh;f;g;f 1', 'sh;f;g;g 3']);
    expect(apply('recursion=all', lines)).toEqual(['sh;f;g 3', 'sh;f;g;f 1']);
  });

  it('library and kind: neighbours become one frame', () => {
    const lines = ['sh;main;a@native:/lib/libx.so;b@native:/lib/libx.so;c 3', 'sh;r@kernel;s@kernel 2'];
    expect(apply('library=libx.so', lines)).toEqual(['sh;main;[libx.so];c 3', 'sh;r;s 2']);
    expect(apply('kind=kernel', lines)).toEqual(['sh;[kernel] 2', 'sh;main;a;b;c 3']);
  });

  it('only mine: what runtimes and systems bring along is taken out', () => {
    const lines = [
      'py;main@native:/usr/bin/python3.11;app@cpython;malloc@native:/usr/lib/libc.so.6 3',
      'go;main.work@go;runtime.mallocgc@go;page@kernel 2',
      'go;net/http.serve@go;example.org/x.Handle@go 4',
      'own;start@native:/lib/libc.so.6;work@native:/opt/own/own 1',
    ];
    expect(apply('only=mine', lines)).toEqual([
      'go;example.org/x.Handle 4',
      'go;main.work 2',
      'own;work 1',
      'py;app 3',
    ]);
    expect(apply('only=go,python', lines)).toEqual([
      'go;example.org/x.Handle 4',
      'go;main.work;page 2',
      'own;start;work 1',
      'py;app;malloc 3',
    ]);
  });

  it('come one after the other', () => {
    expect(apply('hide=b focus=c', ['sh;a;b;c;b;d 3'])).toEqual(['sh;c;d 3']);
  });

  it('refuse what they do not know, with what to write', () => {
    expect(() => parseTransforms('zoom=f')).toThrow('"zoom" is not a transform: use one of focus, hide');
    expect(() => parseTransforms('hide!=f')).toThrow('write hide=VALUE');
    expect(() => parseTransforms('hide')).toThrow('write KEY=VALUE, such as focus=main');
    expect(() => parseTransforms('only=yours')).toThrow('write only=mine');
    expect(() => parseTransforms('hide~(')).toThrow('not a regular expression');
  });

  it('conserve events, but for focus, which keeps those of its function', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 8 });
    const line = fc.tuple(path, fc.integer({ min: 1, max: 9 })).map(([f, n]) => `p;${f.join(';')} ${n}`);
    const name = fc.constantFrom('hide', 'collapse', 'recursion', 'kind', 'focus');
    const steps = fc.array(fc.tuple(name, fc.constantFrom('a', 'b', 'native', 'all')), { maxLength: 4 });
    const sum = (parts: readonly StackCounts[]): number =>
      parts.reduce((all, { selfCounts }) => all + selfCounts.reduce((x, y) => x + y, 0), 0);
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 12 }), steps, (lines, list) => {
        const before = partOf(lines);
        const isFocused = list.some(([each]) => each === 'focus');
        const text = list.map(([each, value]) => `${each}=${value}`).join(' ');
        const after = transformParts([before], parseTransforms(text));
        if (isFocused) expect(sum(after)).toBeLessThanOrEqual(sum([before]));
        else expect(sum(after)).toBe(sum([before]));
        for (const { parents } of after)
          for (let node = 1; node < parents.length; node++) expect(parents[node]).toBeLessThan(node);
      }),
    );
  });
});

describe('invertParts', () => {
  const all = { minFraction: 0, maxNodes: 1e6 };

  it('puts the innermost frame first, the process last', () => {
    const part = partOf(['sh;main;f;g 3', 'cc;g 2', 'sh;main 1']);
    expect(linesOf([invertParts([part], all)])).toEqual(['g;cc 2', 'g;f;main;sh 3', 'main;sh 1']);
  });

  it('goes no further where there is little, and counts all of it', () => {
    const part = partOf(['sh;main;f;g 99', 'sh;main;f;h 1']);
    const few = invertParts([part], { ...all, minFraction: 0.05 });
    expect(linesOf([few])).toEqual(['g;f;main;sh 99', 'h;(other) 1']);
  });

  it('follows the largest first, so that none of those that are kept is missing', () => {
    const path = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 6 });
    const line = fc.tuple(path, fc.integer({ min: 1, max: 99 })).map(([f, n]) => `p;${f.join(';')} ${n}`);
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 20 }),
        (lines, maxNodes) => {
          const limits = { minFraction: 0, maxNodes };
          const whole = buildFlameTree([invertParts([partOf(lines)], all)], limits, 'size');
          const bounded = buildFlameTree([invertParts([partOf(lines)], limits)], limits, 'size');
          const sizes = ({ parents, selfCounts, nodeFrames, frames }: FlameTree): number[] => {
            const totals = selfCounts.slice();
            for (let node = totals.length - 1; node > 0; node--) totals[parents[node]!]! += totals[node]!;
            const isBox = (_: number, node: number): boolean => frames[nodeFrames[node]!]!.kind !== 'other';
            return [...totals.filter(isBox)].sort((a, b) => b - a);
          };
          expect(sizes(bounded)).toEqual(sizes(whole));
        },
      ),
    );
  });
});
