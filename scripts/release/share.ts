/** What a release has for shells and for man(1), made of the definitions of commands. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { wholeProgram } from '../../cli/commands/all-commands.ts';
import { shapeOf } from '../../cli/program/command-shape.ts';
import { completionFor } from '../../cli/program/completions.ts';
import { examplesIn } from '../../cli/program/examples.ts';
import { manualPages } from '../../cli/program/manual.ts';
import type { Release } from './release.ts';

/** Below `share/`, where distributions look for them. */
export async function writeShare(target: string, { version, epoch }: Release): Promise<void> {
  const program = await wholeProgram();
  const shape = shapeOf(program);
  const write = (path: string, text: string): void => {
    const whole = join(target, 'share', path);
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, text);
  };
  const date = new Date(epoch * 1000).toISOString().slice(0, 10);
  for (const { name, text } of manualPages(shape, { version, date }, (path) => examplesIn(program, path)))
    write(`man/man1/${name}`, text);
  write('bash-completion/completions/everyframe', completionFor('bash', shape));
  write('zsh/vendor-completions/_everyframe', completionFor('zsh', shape));
  write('fish/vendor_completions.d/everyframe.fish', completionFor('fish', shape));
}
