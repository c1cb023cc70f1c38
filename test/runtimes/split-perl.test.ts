import { join } from 'node:path';
import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { findPerls } from './perls.ts';
import { itKeepsTheSplit } from './split.ts';

const SCRIPT = join(import.meta.dirname, 'perl/split.pl');
/** The library is the program's code once more, and so is what looks for errors. */
const perls = missingRights ? [] : findPerls().filter(({ title }) => !/, (?:libperl|debugging)/.test(title));

describe.skipIf(missingRights).each(perls)('30 % and 70 % in $title', (perl) => {
  itKeepsTheSplit({
    command: [...perl.command, perl.place(SCRIPT)],
    build: perl.build,
    shapes: ['leaf', 'recursive', 'sort'],
    frameType: 'perl',
  });
});
