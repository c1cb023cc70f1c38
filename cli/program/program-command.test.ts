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
    .argument('<FILE>')
    .option('--top <N>')
    .action(() => {});
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
  ['report a --tip 3', "error: unknown option '--tip'\n(Did you mean --top?)"],
])('%s', (line, message) => {
  expect(errorOf(line)).toBe(message);
});
