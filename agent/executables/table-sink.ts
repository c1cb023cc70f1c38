import type { FileKey } from '../../common/base/brand.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import type { TableImage } from '../tracer/tables.ts';

/** Takes finished tables: BPF maps. */
export interface TableSink {
  /** Publishes a file's table; rejects where it does not fit. */
  install(key: FileKey, table: TableImage, runtime?: DetectedRuntime): Promise<void>;
  /** A runtime was found in a file whose table is still being made: its frames are unwound from now on. */
  announce(key: FileKey, runtime: DetectedRuntime): Promise<void>;
  /** The file has nothing to unwind with. */
  markNoTable(key: FileKey): void;
  /** It is shared memory: code in it is taken for code that no file backs. */
  markMemory(key: FileKey): void;
  /** BPF reports the file again when it next meets it. */
  forget(key: FileKey): Promise<void> | void;
}
