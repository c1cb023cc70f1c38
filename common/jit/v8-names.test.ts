import { expect, test } from 'vitest';
import { readScriptFunction } from './v8-names.ts';

test.each([
  ['JS:~main file:///tmp/page.html:4:14', 'main', 'file:///tmp/page.html', 4, 14],
  ['JS:*fib /srv/app.js:2:13', 'fib', '/srv/app.js', 2, 13],
  ["JS:*'sortMany /srv/app.js:3:18", 'sortMany', '/srv/app.js', 3, 18],
  ['JS:+get value /srv/app.js:2:13', 'get value', '/srv/app.js', 2, 13],
  ['LazyCompile:*handle /srv/app.js:17:9', 'handle', '/srv/app.js', 17, 9],
  ['JS:^ /srv/app.js:1:1', '<anonymous>', '/srv/app.js', 1, 1],
  ['Script:~ https://example.org/a.js:1:1', '<anonymous>', 'https://example.org/a.js', 1, 1],
  ['Function:~f node:internal/timers:9:1', 'f', 'node:internal/timers', 9, 1],
])('%s', (name, called, file, startLine, startColumn) => {
  expect(readScriptFunction(name)).toEqual({ function: called, file, startLine, startColumn });
});

test.each([
  'Builtin:InterpreterEntryTrampoline',
  'BytecodeHandler:LdaSmi',
  'RegExp:a:1:2',
  'JS:',
  'std::function:1:2',
  'JS:~f nowhere',
])('%s is not one of JavaScript', (name) => expect(readScriptFunction(name)).toBeUndefined());
