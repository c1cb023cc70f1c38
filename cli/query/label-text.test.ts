import { expect, it } from 'vitest';
import { labelsText, valuesText } from './label-text.ts';

it('lists labels, those that all samples have first', () => {
  const answer = { labels: ['process', 'thread'], attributes: ['k8s.pod.name'] };
  expect(labelsText(answer, 10)).toEqual(['process', 'thread', 'k8s.pod.name']);
  expect(labelsText(answer, 2)).toEqual(['process', 'thread', '… 1 more labels: raise --limit to see them']);
});

it('lists values with their shares, and says what is left out', () => {
  const values = [
    { value: 'sh', samples: 6 },
    { value: '', samples: 2 },
  ];
  expect(valuesText({ label: 'process', samples: 8, valueCount: 3, values })).toEqual([
    '   samples   share  process',
    '         6   75.0%  sh',
    '         2   25.0%  (none)',
    '… 1 more values: raise --limit to see them',
  ]);
});
