import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { isWholeMatrix } from './package-roots.ts';
import { findPythons } from './pythons.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'python/split.py');
const pythons = missingRights ? [] : findPythons().slice(0, isWholeMatrix ? undefined : 1);

describe.skipIf(missingRights).each(pythons)('30 % and 70 % in $title', (python) => {
  itKeepsTheSplit({
    command: [...python.command, python.place(SCRIPT)],
    build: python.build,
    shapes: ['leaf', 'recursive', 'threads'],
    frameType: 'cpython',
  });
});
