import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { isWholeMatrix } from './package-roots.ts';
import { findRubies } from './rubies.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'ruby/split.rb');
const rubies = missingRights ? [] : findRubies().slice(0, isWholeMatrix ? undefined : 1);

describe.skipIf(missingRights).each(rubies)('30 % and 70 % in $title', (ruby) => {
  itKeepsTheSplit({
    command: [...ruby.command, ruby.place(SCRIPT)],
    build: ruby.build,
    shapes: ['leaf', 'recursive', 'fibers'],
    frameType: 'ruby',
  });
});
