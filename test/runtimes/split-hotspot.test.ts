import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { compileJava, findJavas, placeClasses } from './javas.ts';
import { itKeepsTheSplit } from './split.ts';

const javas = missingRights ? [] : findJavas();
const classes = javas.length > 0 ? compileJava() : '';

/** JDK 8 has no safepoint in a loop that counts, and notes none of its places unless it is asked to; nor does C2 for arm64. */
const PLACES_OF_LOOPS = ['-XX:+UnlockDiagnosticVMOptions', '-XX:+DebugNonSafepoints'];

describe.skipIf(missingRights).each(javas)('30 % and 70 % in $title', (java) => {
  const flags = java.major === 8 || process.arch === 'arm64' ? PLACES_OF_LOOPS : [];
  itKeepsTheSplit({
    command: [...java.command, ...flags, '-Xmx64m', '-cp', placeClasses(java, classes), 'Split'],
    build: java.build,
    shapes: ['leaf', 'recursive'],
    frameType: 'jvm',
  });
});
