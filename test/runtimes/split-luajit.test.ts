import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { findLuajits } from './luajits.ts';
import { isWholeMatrix } from './package-roots.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'luajit/split.lua');
const luajits = missingRights ? [] : findLuajits();
const cases = luajits.flatMap(({ title, build, ...interpreter }) => [
  { ...interpreter, title, build, mode: [] },
  ...(isWholeMatrix
    ? [
        {
          ...interpreter,
          title: `${title}, interpreter`,
          build: { ...build, series: `${build.series}, interpreter` },
          mode: ['interpreter'],
        },
      ]
    : []),
]);

describe.skipIf(missingRights).each(cases)('30 % and 70 % in $title', ({ command, place, build, mode }) => {
  itKeepsTheSplit({
    command: [...command, place(SCRIPT), ...mode],
    build,
    shapes: ['leaf', 'recursive', 'coroutines'],
    frameType: 'luajit',
  });
});
