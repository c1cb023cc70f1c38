/** Which executables and libraries a command will run: what can be known beforehand. */
import { execFileSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fdSource } from '../../agent/files/fd-source.ts';
import { parseElf } from '../../common/elf/elf.ts';

const PT_INTERP = 3;
/** Of a script's first line, and of the dynamic linker's path. */
const MAX_LINE_BYTES = 4096;
/** A script's interpreter may be a script. */
const MAX_SCRIPTS = 4;
const MAX_SCRIPT_BYTES = 64 << 10;
/** The command, and what its scripts run: the first ones. */
const MAX_COMMANDS = 12;
const SHELL = /^(?:ba|da|a|k|mk|z)?sh$/;
/** Behind what is set for it alone, and `exec`. */
const COMMAND = /^[ \t]*(?:\w+=\S*[ \t]+)*(?:exec[ \t]+)?([\w./+-]*\w)(?=[\s;]|$)/gm;
const LINKER_TIMEOUT_MS = 2000;
/** Of glibc and musl; other programs need not know --list. */
const DYNAMIC_LINKER = /^ld([-.]|64\.)/;

/**
 * The command's program, or its script's interpreter, and the libraries that the dynamic linker will load; the same of what a
 * script of a shell runs by its name.
 */
export function filesOfCommand(command: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const files = new Set<string>();
  const commands = [command];
  for (let i = 0; i < commands.length && i < MAX_COMMANDS; i++) {
    const { program, words } = programOf(commands[i]!, env);
    if (program === undefined) continue;
    files.add(program);
    for (const library of librariesOf(program, env)) files.add(library);
    if (SHELL.test(basename(program)))
      commands.push(
        ...commandsIn(scriptOf(words)).flatMap((name) => (findCommand(name, env) ? [[name]] : [])),
      );
  }
  return [...files];
}

/** What runs first, and the words that it gets. */
function programOf(
  [command = '', ...words]: readonly string[],
  env: NodeJS.ProcessEnv,
): { program: string | undefined; words: readonly string[] } {
  let program = findCommand(command, env);
  let given = words;
  for (let scripts = 0; program !== undefined && scripts < MAX_SCRIPTS; scripts++) {
    const interpreter = interpreterOf(program);
    if (!interpreter) return { program, words: given };
    given = [program, ...given];
    // "#!/usr/bin/env python3": env becomes python3
    const isEnv = basename(interpreter[0]!) === 'env';
    program = findCommand(isEnv ? (interpreter.at(-1) ?? '') : interpreter[0]!, env);
  }
  return { program: undefined, words: [] };
}

/** The text that a shell reads. */
const scriptOf = ([first = '', second = '']: readonly string[]): string =>
  first === '-c' ? second : startOf(first, MAX_SCRIPT_BYTES);

/** The names of commands at the beginnings of a shell's lines, each once. */
const commandsIn = (script: string): string[] => [
  ...new Set([...script.matchAll(COMMAND)].map(([, name]) => name!)),
];

/** As execvp(3) finds it. */
function findCommand(command: string, env: NodeJS.ProcessEnv): string | undefined {
  const places =
    command === '' ? [] : command.includes('/') ? [''] : (env['PATH'] ?? '/usr/bin:/bin').split(':');
  return places.map((place) => (place === '' ? command : join(place, command))).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The words behind "#!"; undefined where the file is not a script. */
function interpreterOf(path: string): string[] | undefined {
  const words = /^#![ \t]*(\S.*)/.exec(startOf(path, MAX_LINE_BYTES))?.[1];
  return words?.trim().split(/\s+/);
}

/** '' where it can't be read. */
function startOf(path: string, maxBytes: number): string {
  const text = Buffer.alloc(maxBytes);
  try {
    // not for who writes to a pipe of that name
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return text.toString('utf8', 0, readSync(fd, text, 0, text.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** The dynamic linker says what it would load, without running the program. */
function librariesOf(program: string, env: NodeJS.ProcessEnv): string[] {
  try {
    const linker = linkerOf(program);
    if (linker === undefined || !DYNAMIC_LINKER.test(basename(linker))) return [];
    const list = execFileSync(linker, ['--list', program], {
      encoding: 'utf8',
      env,
      timeout: LINKER_TIMEOUT_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const libraries = [...list.matchAll(/(\/\S.*) \(0x[0-9a-f]+\)$/gm)].map(([, path]) => path!);
    return [...new Set([linker, ...libraries])];
  } catch {
    // what it needs is then met as it is sampled
    return [];
  }
}

function linkerOf(program: string): string | undefined {
  const fd = openSync(program, 'r');
  try {
    const elf = parseElf(fdSource(fd));
    const segment = elf.segments.find(({ type }) => type === PT_INTERP);
    if (!segment || segment.filesz > MAX_LINE_BYTES) return undefined;
    const path = elf.source.read(segment.offset, segment.filesz);
    return Buffer.from(path).toString('utf8').replace(/\0.*/s, '');
  } finally {
    closeSync(fd);
  }
}
