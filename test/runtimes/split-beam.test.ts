import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { findErlangs, runModule } from './erlangs.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'beam/split.erl');
const erlangs = missingRights ? [] : findErlangs();

describe.skipIf(missingRights).each(erlangs)('30 % and 70 % in $title', (erlang) => {
  itKeepsTheSplit({
    command: runModule(erlang, SCRIPT),
    build: erlang.build,
    shapes: ['leaf', 'recursive', 'closures'],
    frameType: 'beam',
  });
});
