import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { findLuas } from './luas.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'luajit/split.lua');
const luas = missingRights ? [] : findLuas();

describe.skipIf(missingRights).each(luas)('30 % and 70 % in $title', ({ command, place, build }) => {
  itKeepsTheSplit({
    command: [...command, place(SCRIPT)],
    build,
    shapes: ['leaf', 'recursive', 'coroutines'],
    frameType: 'lua',
  });
});
