/** Manual pages, made of the definitions of commands (mdoc is for BSD; this is man(7)). */
import { allShapes, type CommandShape, type OptionShape } from './command-shape.ts';

export interface ManualPage {
  /** `everyframe-agent.1` */
  name: string;
  text: string;
}

export interface Edition {
  version: string;
  /** YYYY-MM-DD */
  date: string;
}

/** @param examplesOf what a command's help says at its end */
export const manualPages = (
  program: CommandShape,
  edition: Edition,
  examplesOf: (path: readonly string[]) => string,
): ManualPage[] =>
  allShapes(program).map((shape) => ({
    name: `${shape.path.join('-')}.1`,
    text: pageOf(shape, edition, examplesOf(shape.path)),
  }));

/** No dot or quote begins a line, and a dash is one that can be copied. */
const text = (line: string): string =>
  line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');

function pageOf(shape: CommandShape, { version, date }: Edition, examples: string): string {
  const title = shape.path.join('-');
  const { operands, options, commands } = shape;
  const lines = [
    `.TH ${text(title.toUpperCase())} 1 "${date}" "everyframe ${text(version)}" "User Commands"`,
    '.SH NAME',
    `${text(title)} \\- ${text(shape.description.split(/[:;\n]/)[0]!.replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    synopsisOf(shape),
    '.SH DESCRIPTION',
    `${text(sentence(shape.description))}`,
    ...(commands.length === 0 ? [] : ['.SH COMMANDS', ...commands.flatMap(commandLines)]),
    ...(operands.some(({ help }) => help !== '')
      ? ['.SH ARGUMENTS', ...operands.flatMap(({ name, help }) => item(`\\fI${text(name)}\\fR`, help))]
      : []),
    ...(options.length === 0 ? [] : ['.SH OPTIONS', ...options.flatMap(optionLines)]),
    ...exampleLines(examples),
    ...seeAlso(shape),
  ];
  return `${lines.join('\n')}\n`;
}

const sentence = (description: string): string => {
  const whole = description.charAt(0).toUpperCase() + description.slice(1);
  return whole.endsWith('.') ? whole : `${whole}.`;
};

function synopsisOf({ path, operands, options, commands }: CommandShape): string {
  const parts = operands.map(({ name, isRequired, isRepeated }) => {
    const one = `\\fI${text(name)}\\fR${isRepeated ? '...' : ''}`;
    return isRequired ? one : `[${one}]`;
  });
  return [
    `\\fB${text(path.join(' '))}\\fR`,
    ...(options.length > 0 ? ['[\\fIoptions\\fR]'] : []),
    ...(commands.length > 0 ? ['[\\fIcommand\\fR]'] : []),
    ...parts,
  ].join(' ');
}

const item = (tag: string, help: string): string[] => [
  '.TP',
  tag,
  text(help === '' ? 'See above.' : sentence(help)),
];

const commandLines = ({ path, description }: CommandShape): string[] =>
  item(`\\fB${text(path.slice(1).join(' '))}\\fR, see \\fB${text(path.join('-'))}\\fR(1)`, description);

function optionLines({ short, long, value, help }: OptionShape): string[] {
  const names = [short, long].filter((each) => each !== undefined).map((each) => `\\fB${text(each)}\\fR`);
  return item(names.join(', ') + (value === undefined ? '' : ` \\fI${text(value)}\\fR`), help);
}

/** Of `  line` and below it `      what it does`. */
function exampleLines(examples: string): string[] {
  const lines = examples.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) return [];
  return [
    '.SH EXAMPLES',
    ...lines.flatMap((line) =>
      line.startsWith('      ') ? [text(line.trim())] : ['.TP', `\\fB${text(line.trim())}\\fR`],
    ),
  ];
}

function seeAlso({ path }: CommandShape): string[] {
  const above = path.length > 1 ? [`\\fB${text(path.slice(0, -1).join('-'))}\\fR(1)`] : [];
  return [
    ...(path.length < 2
      ? ['.SH FILES', '.TP', '\\fI/etc/everyframe/config.yaml\\fR', 'Settings of the services.']
      : []),
    ...(above.length > 0 ? ['.SH SEE ALSO', ...above] : []),
  ];
}
