import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { isWholeMatrix } from './package-roots.ts';
import { findPhps } from './phps.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'php/split.php');
const phps = missingRights ? [] : findPhps().filter(({ jit }) => isWholeMatrix || jit === 'tracing');

describe.skipIf(missingRights).each(phps)('30 % and 70 % in $title', (php) => {
  itKeepsTheSplit({
    command: [...php.command, php.place(SCRIPT)],
    build: php.build,
    shapes: ['leaf', 'recursive', 'generators'],
    frameType: 'php',
  });
});
