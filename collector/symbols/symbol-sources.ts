import type { Logger } from 'pino';
import { LateNames } from './late-names.ts';
import { SymbolFiles } from './symbol-files.ts';
import { SymbolReader } from './symbol-reader.ts';

/** What names frames that arrived without a name. */
export class SymbolSources {
  readonly files: SymbolFiles;
  readonly reader = new SymbolReader();
  readonly names: LateNames;

  /** `directory`: where files are kept; undefined: as long as this lives. */
  constructor(directory: string | undefined, logger: Pick<Logger, 'error'>) {
    this.files = new SymbolFiles(directory);
    this.names = new LateNames(this.files, this.reader, logger);
  }

  async close(): Promise<void> {
    await this.reader.stop();
    this.files.close();
  }
}
