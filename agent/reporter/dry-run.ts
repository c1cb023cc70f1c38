/** In place of destinations: says what would be pushed, and pushes nothing. */
import { countEvents, type Profile } from '../../common/profile/model/profile.ts';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import type { SenderLog } from '../../otlp-client/link-log.ts';
import { readScope } from './scope.ts';

export class DryRun {
  readonly #log: Pick<SenderLog, 'info'>;
  #samples = 0;

  constructor(log: Pick<SenderLog, 'info'>) {
    this.#log = log;
  }

  push(profile: Profile): void {
    const samples = countEvents(profile);
    if (samples === 0) return;
    this.#samples += samples;
    const processes = new Set(profile.samples.map(({ process }) => process)).size;
    const bytes = encodeOtlp([profile], readScope()).length;
    this.#log.info(
      `dry run: this would be pushed: ${samples} samples of ${processes} processes, ${Math.ceil(bytes / 1024)} KiB before compression`,
    );
  }

  replace(): void {}

  async flush(): Promise<void> {}

  close(): void {}

  stats(): Record<string, number> {
    return { samplesPushed: this.#samples };
  }
}
