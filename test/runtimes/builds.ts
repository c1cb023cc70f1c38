/**
 * Notes at a test which build of a runtime it tried, and what came out. scripts/runtime-support.ts finds the notes in
 * vitest's report, and makes the tables of docs/interpreters/support.md and what the agent calls verified out of them.
 */
import type { TestedBuild, TestedSplit } from '../../scripts/runtime-support.ts';

declare module 'vitest' {
  interface TaskMeta {
    build?: TestedBuild;
    split?: TestedSplit;
  }
}
