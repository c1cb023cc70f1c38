/** Completions for shells, made of the definitions of commands. */
import { allShapes, type CommandShape, type OptionShape } from './command-shape.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function completionFor(shell: (typeof SHELLS)[number], program: CommandShape): string {
  return { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion }[shell](program);
}

const flagsOf = ({ short, long }: Pick<OptionShape, 'short' | 'long'>): string[] =>
  [short, long].filter((each) => each !== undefined);
/** Between single quotes. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const isFile = (value: string | undefined): boolean => /^(?:FILE|DIR|PATH)/.test(value ?? '');
/** One line, without the end of a sentence. */
const brief = (text: string): string => text.split(/[;\n]/)[0]!.trim();

/** `everyframe collector import` in the order of words, without flags. */
const keyOf = ({ path }: CommandShape): string => path.slice(1).join(' ');

function bashCompletion(program: CommandShape): string {
  const cases = allShapes(program).map((shape) => {
    const words = [...shape.commands.map(({ path }) => path.at(-1)!), ...shape.options.flatMap(flagsOf)];
    return `\t${quoted(keyOf(shape))}) words=${quoted(words.join(' '))} ;;`;
  });
  const values = allShapes(program).flatMap((shape) =>
    shape.options.flatMap((option) =>
      option.choices.length === 0
        ? []
        : flagsOf(option).map(
            (flag) =>
              `\t${quoted(`${keyOf(shape)} ${flag}`.trim())}) choices=${quoted(option.choices.join(' '))} ;;`,
          ),
    ),
  );
  const takers = [
    ...new Set(
      allShapes(program).flatMap(({ options }) =>
        options.filter(({ value }) => value !== undefined).flatMap(flagsOf),
      ),
    ),
  ];
  return `# bash completion of everyframe
_everyframe() {
\tlocal word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} path='' words='' choices='' i next
\tlocal takers=' ${takers.join(' ')} '
\tfor ((i = 1; i < COMP_CWORD; i++)); do
\t\tcase \${COMP_WORDS[i]} in
\t\t--) COMPREPLY=(); compopt -o default 2>/dev/null; return ;;
\t\t-*) if [[ $takers == *" \${COMP_WORDS[i]} "* ]]; then ((i++)); fi ;;
\t\t*)
\t\t\tnext="\${path:+$path }\${COMP_WORDS[i]}"
\t\t\tcase " $(_everyframe_paths) " in *" \${next// /+} "*) path=$next ;; esac
\t\t\t;;
\t\tesac
\tdone
\tcase "\${path:+$path }$before" in
${values.join('\n')}
\tesac
\tif [[ $takers == *" $before "* ]]; then
\t\tif [ -n "$choices" ]; then COMPREPLY=($(compgen -W "$choices" -- "$word")); else compopt -o default 2>/dev/null; COMPREPLY=(); fi
\t\treturn
\tfi
\tcase $path in
${cases.join('\n')}
\tesac
\tCOMPREPLY=($(compgen -W "$words" -- "$word"))
\tif [ \${#COMPREPLY[@]} = 0 ]; then compopt -o default 2>/dev/null; fi
}
_everyframe_paths() { echo ${quoted(
    allShapes(program)
      .map((shape) => keyOf(shape).replaceAll(' ', '+'))
      .filter(Boolean)
      .join(' '),
  )}; }
complete -F _everyframe everyframe
`;
}

/** A description in a spec of _arguments: between brackets. */
const zshText = (text: string): string =>
  brief(text)
    .replace(/[[\]:\\]/g, (c) => `\\${c}`)
    .replaceAll("'", "'\\''");

function zshOption(option: OptionShape): string[] {
  const action =
    option.choices.length > 0 ? `(${option.choices.join(' ')})` : isFile(option.value) ? '_files' : ' ';
  const value = option.value === undefined ? '' : `:${zshText(option.value)}:${action}`;
  return flagsOf(option).map((flag) => `'*${flag}[${zshText(option.help)}]${value}'`);
}

function zshCompletion(program: CommandShape): string {
  const functions = allShapes(program).map((shape) => {
    const name = `_everyframe${shape.path
      .slice(1)
      .map((part) => `_${part.replaceAll('-', '_')}`)
      .join('')}`;
    const options = shape.options.flatMap(zshOption);
    if (shape.commands.length === 0)
      return `${name}() {\n\t_arguments ${[...options, "'*:file:_files'"].join(' \\\n\t\t')}\n}`;
    const list = shape.commands.map((each) => `'${each.path.at(-1)}:${zshText(each.description)}'`);
    const cases = shape.commands.map(
      (each) => `\t\t${each.path.at(-1)}) ${name}_${each.path.at(-1)!.replaceAll('-', '_')} ;;`,
    );
    return `${name}() {
\tlocal state line
\t_arguments -C ${[...options, "'1: :->command'", "'*:: :->rest'"].join(' \\\n\t\t')}
\tcase $state in
\tcommand)
\t\tlocal -a commands=(
\t\t\t${list.join('\n\t\t\t')}
\t\t)
\t\t_describe command commands
\t\t;;
\trest)
\t\tcase $line[1] in
${cases.join('\n')}
\t\tesac
\t\t;;
\tesac
}`;
  });
  return `#compdef everyframe\n${functions.join('\n\n')}\n\nif [ "$funcstack[1]" = _everyframe ]; then _everyframe "$@"; else compdef _everyframe everyframe; fi\n`;
}

const fishText = (text: string): string => `'${brief(text).replace(/[\\']/g, (c) => `\\${c}`)}'`;

function fishCompletion(program: CommandShape): string {
  const lines = allShapes(program).flatMap((shape) => {
    const [, ...path] = shape.path;
    const seen = path.map((part) => `__fish_seen_subcommand_from ${part}`);
    const below = shape.commands.map((each) => each.path.at(-1)!);
    const none = below.length === 0 ? [] : [`not __fish_seen_subcommand_from ${below.join(' ')}`];
    const condition = quoted([...seen, ...none].join('; and '));
    const options = shape.options.map((option) => fishOption(option, quoted(seen.join('; and '))));
    const commands = shape.commands.map(
      (each) =>
        `complete -c everyframe -f -n ${condition} -a ${each.path.at(-1)} -d ${fishText(each.description)}`,
    );
    return [...commands, ...options];
  });
  return `# fish completion of everyframe\n${lines.join('\n')}\n`;
}

function fishOption({ short, long, value, choices, help }: OptionShape, condition: string): string {
  const words = [
    ...(condition === "''" ? [] : ['-n', condition]),
    ...flagsOf({ short, long }).flatMap((flag) =>
      flag.startsWith('--') ? ['-l', flag.slice(2)] : ['-s', flag.slice(1)],
    ),
    ...(value === undefined ? [] : isFile(value) ? ['-r', '-F'] : ['-x']),
    ...(choices.length === 0 ? [] : ['-a', quoted(choices.join(' '))]),
  ];
  return `complete -c everyframe ${words.join(' ')} -d ${fishText(help)}`;
}
