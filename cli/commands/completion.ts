import { Argument, type Command } from 'commander';
import { shapeOf } from '../program/command-shape.ts';
import { completionFor, SHELLS } from '../program/completions.ts';
import { addExamples } from '../program/examples.ts';

/** @param whole makes the program with all of its commands */
export function registerCompletion(program: Command, whole: () => Promise<Command>): void {
  const command = program
    .command('completion')
    .description("print what makes a shell complete everyframe's commands and flags; packages bring it along")
    .addArgument(new Argument('<SHELL>', SHELLS.join(', ')).choices([...SHELLS]))
    .action(async (shell: (typeof SHELLS)[number]) => {
      process.stdout.write(completionFor(shell, shapeOf(await whole())));
    });
  addExamples(command, [
    ['source <(everyframe completion bash)', 'in this shell'],
    ['everyframe completion fish > ~/.config/fish/completions/everyframe.fish', 'in every fish from now on'],
  ]);
}
