import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { findNodes } from './nodes.ts';
import { isWholeMatrix } from './package-roots.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'v8/split.cjs');
const nodes = missingRights ? [] : findNodes().slice(0, isWholeMatrix ? undefined : 1);

describe.skipIf(missingRights).each(nodes)('30 % and 70 % in $title', (node) => {
  itKeepsTheSplit({
    command: [...node.command, node.place(SCRIPT)],
    build: node.build,
    shapes: ['leaf', 'hot', 'recursive', 'threads'],
    frameType: 'v8js',
  });
});
