/** Demangled names against binutils' c++filt, over every name that the C++ libraries of this machine export. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { demangle } from '../../common/symbols/demangle/demangle.ts';

const MAX_BYTES = 256 << 20;

function run(command: string, args: string[], input = ''): string {
  const { status, stdout, error } = spawnSync(command, args, {
    input,
    encoding: 'utf8',
    maxBuffer: MAX_BYTES,
  });
  if (status !== 0) throw new Error(`${command}: ${error?.message ?? `exit code ${status}`}`);
  return stdout;
}

function mangledNames(library: string): string[] {
  const names = run('nm', ['-D', '--defined-only', library]).matchAll(/ (_Z[^\s@]*)/g);
  return [...new Set([...names].map((match) => match[1]!))];
}

/** After an empty pack c++filt leaves out the blank that it writes elsewhere: `a<b<c>>`. */
const normalise = (name: string): string => name.replaceAll('>>', '> >').replaceAll('>>', '> >');

/** Of each library the first version. */
const libraries = ['libstdc++.so.6', 'libLLVM-*.so.1'].flatMap((pattern) =>
  run('sh', ['-c', `ls /usr/lib/*/${pattern} 2>/dev/null || true`])
    .split('\n')
    .filter(Boolean)
    .slice(0, 1),
);

test.each(libraries)('%s: every name is as c++filt has it', (library) => {
  const names = mangledNames(library);
  expect(names.length).toBeGreaterThan(1000);
  // without -i it writes std::string in full
  const expected = run('c++filt', ['-i'], `${names.join('\n')}\n`).split('\n');
  const wrong = names
    .map((name, i) => ({ name, ours: normalise(demangle(name)), theirs: normalise(expected[i]!) }))
    .filter(({ ours, theirs }) => ours !== theirs);
  expect(wrong).toEqual([]);
});
