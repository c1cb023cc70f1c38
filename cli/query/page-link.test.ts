import { expect, it } from 'vitest';
import { parseHash } from '../../collector/web/state/url-state.ts';
import { pageLink } from './page-link.ts';

const [A, B] = [
  { fromMs: 1000, toMs: 2000 },
  { fromMs: 5000.4, toMs: 9000 },
];
const stateOf = (link: string) => parseHash(new URL(link).hash);

it('leads to the times of the answer, however they were asked for', () => {
  const state = stateOf(
    pageLink({ url: 'http://127.0.0.1:11080' }, 'tree', { from: '-30m', where: 'process=node' }, A),
  );
  expect(state).toMatchObject({ overview: A, where: 'process=node', view: 'icicle' });
});

it('leads to the callers of a function', () => {
  const link = pageLink({ url: 'http://127.0.0.1:11080/' }, 'callers', { function: 'a b#c&d' }, A);
  expect(stateOf(link)).toMatchObject({ view: 'callers', function: 'a b#c&d' });
});

it('leads to both windows of a comparison, with the filter of each', () => {
  const at = { url: 'http://127.0.0.1:11080/' };
  const state = stateOf(pageLink(at, 'diff', { base_range: '1h', where: 'host=b' }, { now: B, base: A }));
  const overview = { fromMs: 5000, toMs: 9000 };
  expect(state).toMatchObject({ overview, where: 'host=b', base: A, baseWhere: undefined, view: 'diff' });
  const filtered = pageLink(at, 'diff', { base_where: 'host=a' }, { now: B, base: A });
  expect(stateOf(filtered)).toMatchObject({ where: '', baseWhere: 'host=a', view: 'diff' });
});

it('has the transforms, the type and the groups of the answer', () => {
  const query = { type: 'off_cpu', transform: 'idle=hide only=mine', by: 'thread' };
  expect(stateOf(pageLink({ url: 'http://127.0.0.1:11080' }, 'timeline', query, A))).toMatchObject(query);
  expect(stateOf(pageLink({ url: 'http://127.0.0.1:11080' }, 'top', query, A))).toMatchObject({
    view: 'top',
  });
});
