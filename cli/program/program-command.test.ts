import { expect, it } from 'vitest';
import { ProgramCommand } from './program-command.ts';

function errorOf(line: string): string {
  const program = new ProgramCommand('everyframe').exitOverride().configureOutput({ writeErr: () => {} });
  program
    .command('top')
    .option('-p, --pid <PID>')
    .option('--short-names')
    .action(() => {});
  program
    .command('report')
    .argument('<FILE>', 'a recording')
    .option('--top <N>')
    .action(() => {});
  const query = program.command('query');
  query.command('top').argument('[filter...]');
  query.command('callers').argument('<function>');
  try {
    program.parse(line.split(' '), { from: 'user' });
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error(`${line} was taken`);
}

it.each([
  ['top 1234', 'error: top has no use for "1234": is -p 1234 meant?'],
  ['top nginx', 'error: top has no use for "nginx": is -p $(pgrep -d, nginx) meant?'],
  ['top short-names', 'error: top has no use for "short-names": is --short-names meant?'],
  ['report a.pb.gz top=3', 'error: report has no use for "top=3": is --top 3 meant?'],
  ['report a.pb.gz b.pb.gz c.pb.gz', 'error: report has no use for "b.pb.gz c.pb.gz"'],
  ['report', "error: missing required argument 'FILE': a recording"],
  ['query callers', "error: missing required argument 'function'"],
  [
    'query process=node',
    'error: "process=node" is not a command of query: is everyframe query top process=node meant?',
  ],
  ['query tops', "error: unknown command 'tops'\n(Did you mean top?)"],
  ['report a --tip 3', "error: unknown option '--tip'\n(Did you mean --top?)"],
])('%s', (line, message) => {
  expect(errorOf(line)).toBe(message);
});
