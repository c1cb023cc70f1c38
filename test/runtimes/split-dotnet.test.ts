import { describe } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { isWholeMatrix } from './debian-roots.ts';
import { findDotnets, runAssembly } from './dotnets.ts';
import { itKeepsTheSplit } from './split.ts';

const dotnets = missingRights ? [] : findDotnets().slice(0, isWholeMatrix ? undefined : 1);

describe.skipIf(missingRights).each(dotnets)('30 % and 70 % in $title', (dotnet) => {
  const { command, environment } = runAssembly(dotnet, 'split.dll');
  itKeepsTheSplit({
    command,
    environment,
    build: dotnet.build,
    shapes: ['leaf', 'recursive', 'async'],
    frameType: 'dotnet',
  });
});
