/** A scenario of php/scenarios.php, and stacks as texts that are compared with what PHP says of it. */
import { join } from 'node:path';
import type { Php } from './phps.ts';
import { type Running, startScenario } from './scenarios.ts';
import type { ScriptFrame } from './script-frames.ts';

export const SCENARIOS = join(import.meta.dirname, 'php/scenarios.php');

/** Before 8.4 a closure has no name of its own, and the agent gives it one. */
const plainName = (name: string): string => name.replace(/\{closure:.*\}/, '{closure}');

/** Leaf first: `name file:line`. The leaf's line changes; code that the JIT has compiled writes back few. */
export const textOf = (frames: ScriptFrame[]): string =>
  frames
    .map(({ name, file, line }, i) => `${plainName(name)} ${file}${i === 0 ? '' : `:${line}`}`)
    .join('\n');

export async function startPhp({ command, place }: Php, scenario: string): Promise<Running> {
  const script = place(SCENARIOS);
  place(join(import.meta.dirname, 'php/included.php'));
  const { child, said } = await startScenario<[string, string, number][]>([...command, script, scenario]);
  return { child, expected: textOf(said.map(([name, file, line]) => ({ name, file, line }))) };
}
