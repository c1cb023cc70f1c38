import { describe, expect, it } from 'vitest';
import { CPU_SAMPLES } from '../../../common/flame/shown-type.ts';
import type { SamplesAnswer } from '../../api/types.ts';
import { boxAt, layOutChart, listThreads, moveBox } from './chart-model.ts';

/** `TIME THREAD frame;frame`, one sample a line; thread 0 is the process `app`. */
function answerOf(lines: readonly string[]): SamplesAnswer {
  const strings = ['all', 'app'];
  const parent = [0, 0];
  const frame = [0, 1];
  const paths = new Map([['', 1]]);
  const rows = lines.map((line) => {
    const [time, thread, path] = line.split(' ');
    let above = '';
    for (const name of path!.split(';')) {
      const key = `${above};${name}`;
      if (!paths.has(key)) {
        if (!strings.includes(name)) strings.push(name);
        paths.set(key, parent.push(paths.get(above)!) - 1);
        frame.push(strings.indexOf(name));
      }
      above = key;
    }
    return { time: Number(time), thread: Number(thread), node: paths.get(above)! };
  });
  const numbers = strings.map((_, i) => i);
  return {
    fromMs: 0,
    toMs: 1000,
    type: CPU_SAMPLES,
    samples: rows.length,
    returned: rows.length,
    times: rows.map(({ time }) => time),
    nodes: rows.map(({ node }) => node),
    threads: rows.map(({ thread }) => thread),
    cpus: rows.map(() => 0),
    counts: rows.map(() => 1),
    threadTable: [
      { process: 'app', pid: 7, thread: 'app', tid: 7, host: 'h' },
      { process: 'app', pid: 7, thread: 'pool', tid: 8, host: 'h' },
    ],
    stackTable: {
      strings,
      kinds: ['native'],
      frames: { name: numbers, file: numbers, mapping: numbers, kind: numbers.map(() => 0) },
      nodes: { parent, frame, self: parent.map(() => 0) },
      folded: { nodes: 0, samples: 0 },
    },
  };
}

const describeChart = (answer: SamplesAnswer, thread: number): string[] =>
  layOutChart(answer, thread).boxes.map(
    ({ frame, depth, startMs, endMs, samples }) =>
      `${'  '.repeat(depth)}${answer.stackTable.strings[frame]} ${startMs}-${endMs} ${samples}`,
  );

describe('a flame chart', () => {
  it('joins equal neighbours, and shows when a function began and ended', () => {
    const answer = answerOf(['0 0 main;a', '10 0 main;a', '15 1 other', '20 0 main;b', '30 0 main']);
    expect(describeChart(answer, 0)).toEqual(['main 0-50 4', '  a 0-20 2', '  b 20-30 1']);
    expect(describeChart(answer, 1)).toEqual(['other 15-35 1']);
    expect(layOutChart(answer, 0).rows).toBe(2);
  });

  it('leaves a gap where the thread was not seen', () => {
    const answer = answerOf(['0 0 main;a', '10 0 main;a', '20 0 main;a', '500 0 main;a']);
    expect(describeChart(answer, 0)).toEqual([
      'main 0-40 3',
      '  a 0-40 3',
      'main 500-520 1',
      '  a 500-520 1',
    ]);
  });

  it('finds the box of a moment, and lists threads by their samples', () => {
    const answer = answerOf(['0 1 x', '1 1 x', '2 0 main']);
    expect(listThreads(answer)).toEqual([
      { thread: 1, title: 'app · pool (7/8)', samples: 2 },
      { thread: 0, title: 'app · app (7/7)', samples: 1 },
    ]);
    const chart = layOutChart(answer, 1);
    expect(boxAt(chart, 1.5, 0)?.samples).toBe(2);
    expect(boxAt(chart, 1.5, 1)).toBeUndefined();
    expect(boxAt(chart, 100, 0)).toBeUndefined();
  });

  it('is walked by arrow keys', () => {
    const answer = answerOf(['0 0 main;a', '10 0 main;b', '20 0 main;b']);
    const chart = layOutChart(answer, 0);
    const [main, a, b] = chart.boxes;
    expect(moveBox(chart, undefined, 'ArrowRight')).toBe(main);
    expect(moveBox(chart, undefined, 'x')).toBeUndefined();
    expect(moveBox(chart, main, 'ArrowDown')).toBe(a);
    expect(moveBox(chart, a, 'ArrowRight')).toBe(b);
    expect(moveBox(chart, b, 'ArrowRight')).toBe(b);
    expect(moveBox(chart, b, 'ArrowUp')).toBe(main);
    expect(moveBox(chart, b, 'ArrowDown')).toBe(b);
  });
});
