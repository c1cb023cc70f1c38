import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { compileJava, findJavas, placeClasses } from './javas.ts';
import { itKeepsTheSplit } from './split.ts';

const javas = missingRights ? [] : findJavas();
const classes = javas.length > 0 ? compileJava() : '';

describe.skipIf(missingRights).each(javas)('30 % and 70 % in $title', (java) => {
  itKeepsTheSplit({
    command: [...java.command, '-Xmx64m', '-cp', placeClasses(java, classes), 'Split'],
    build: java.build,
    shapes: ['leaf', 'recursive'],
    frameType: 'jvm',
  });
});
