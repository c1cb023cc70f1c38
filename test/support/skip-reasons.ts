/**
 * Vitest reporter: why tests are skipped, which files print as "skipped: …". Vitest's own reporter keeps to itself what
 * tests print that do not fail.
 */
import type { Reporter, Vitest } from 'vitest/node';

export default class SkipReasons implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onUserConsoleLog({ content, taskId = '' }: { content: string; taskId?: string }): void {
    if (!content.startsWith('skipped: ')) return;
    const file = this.#vitest?.state.idMap.get(taskId)?.file.name;
    process.stderr.write(file ? `${file}: ${content}` : content);
  }
}
