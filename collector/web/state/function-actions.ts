/** What can be done with a function, wherever it is seen: each is a change of the state in the address. */
import { formatFilter } from './questions.ts';
import { toggleValue } from './terms.ts';
import type { UrlState } from './url-state.ts';

export interface FunctionRef {
  name: string;
  file: string;
  mapping: string;
}

export interface FunctionAction {
  title: string;
  /** Undefined: the name goes to the clipboard. */
  change: Partial<UrlState> | undefined;
}

/** To the function's lines. */
export const showSource = ({ name, file }: FunctionRef): Partial<UrlState> => ({
  view: 'source',
  function: name,
  file,
});

export function actionsOn({ name, file, mapping }: FunctionRef, state: UrlState): FunctionAction[] {
  const add = (key: string, value: string): Partial<UrlState> => ({
    transform: [state.transform, formatFilter([{ key, operator: '=', values: [value] }])]
      .filter((part) => part !== '')
      .join(' '),
    zoom: '',
  });
  const library = mapping.slice(mapping.lastIndexOf('/') + 1);
  return [
    { title: 'Callers / callees', change: { view: 'callers', function: name } },
    ...(file === ''
      ? []
      : [{ title: 'Source: samples by line', change: showSource({ name, file, mapping }) }]),
    { title: 'Focus on this function', change: add('focus', name) },
    { title: 'Hide this function', change: add('hide', name) },
    { title: 'Collapse callees', change: add('collapse', name) },
    { title: 'Collapse recursion', change: add('recursion', name) },
    ...(library === '' ? [] : [{ title: `Collapse library "${library}"`, change: add('library', library) }]),
    {
      title: 'Keep stacks with this function',
      change: { where: toggleValue(state.where, 'frame', '=', name), zoom: '' },
    },
    {
      title: 'Drop stacks with this function',
      change: { where: toggleValue(state.where, 'frame', '!=', name), zoom: '' },
    },
    { title: 'Copy name', change: undefined },
  ];
}
