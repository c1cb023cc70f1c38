/** The matrix as a page: docs/toolchains.md. */
import { execFileSync } from 'node:child_process';
import { isGoRelease } from './go-releases.ts';
import type { KnownProgram, Outcome } from './known-stacks.ts';

/** Stacks are cut short while a program starts, and where a page of its stack is not in memory. */
export const WHOLE_SHARE = 0.98;

const HEAD = `# Toolchains

Written by \`npm run test:toolchains\` (root): programs that know their own stacks, built by each toolchain with each
option that shapes unwind information, sampled by the agent at 499 Hz. A stack is whole if it has every call from the
one that spins up to the root, and none that was not made.
`;

/** Programs that were not observed keep what `page`, of earlier, says of them; others are told as left out. */
export function describeToolchains(
  page: string,
  programs: readonly KnownProgram[],
  outcomes: ReadonlyMap<KnownProgram, Outcome>,
): string {
  const earlier = new Map(page.split('\n').map((line) => [/^\| (.+?) \| [\d–]/.exec(line)?.[1], line]));
  const rows = programs.map((program) => {
    const outcome = outcomes.get(program);
    return (!outcome && earlier.get(program.title)) || describeProgram(program, outcome);
  });
  return [
    HEAD,
    ...describeTools(page, outcomes),
    '',
    '| program | samples | whole |',
    '|---|--:|--:|',
    ...rows,
    '',
  ].join('\n');
}

/** Those of a run of all programs; a release of Go has its version in its name. */
function describeTools(page: string, outcomes: ReadonlyMap<KnownProgram, Outcome>): string[] {
  const tools = [...new Set([...outcomes.keys()].flatMap(({ tools }) => tools))].filter(
    (t) => !isGoRelease(t),
  );
  const earlier = page.split('\n').filter((line) => line.startsWith('- '));
  const described = tools.map((tool) => `- ${describeTool(tool)}`);
  return described.length >= earlier.length ? described : earlier;
}

function describeProgram({ title }: KnownProgram, outcome: Outcome | undefined): string {
  if (!outcome) return `| ${title} | – | left out |`;
  return `| ${title} | ${outcome.samples} | ${(outcome.wholeShare * 100).toFixed(1)} % |`;
}

/** Its version, as it shows it. */
function describeTool(tool: string): string {
  const [command, ...args] = tool === 'go' ? ['go', 'version'] : [tool, '--version'];
  const text = execFileSync(command!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const version = text.split('\n')[0]!;
  return version.startsWith(tool) ? version : `${tool}: ${version}`;
}
