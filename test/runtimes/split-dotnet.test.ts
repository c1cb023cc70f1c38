import { eachOf } from '../support/each-of.ts';
import { findDotnets, runAssembly } from './dotnets.ts';
import { isWholeMatrix } from './package-roots.ts';
import { itKeepsTheSplit } from './split.ts';

const find = () => findDotnets().slice(0, isWholeMatrix ? undefined : 1);

eachOf(find)('30 % and 70 % in $title', (dotnet) => {
  const { command, environment } = runAssembly(dotnet, 'split.dll');
  itKeepsTheSplit({
    command,
    environment,
    build: dotnet.build,
    shapes: ['leaf', 'recursive', 'async'],
    frameType: 'dotnet',
  });
});
