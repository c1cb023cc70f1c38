import { LRUCache } from 'lru-cache';
import { type FileKey, toFileKey } from '../../common/base/brand.ts';
import type { FileRecord } from '../records/records.ts';
import { type Executable, newExecutable } from './files/executable.ts';
import type { FileIdentity } from './files/open-file.ts';

/** ebpf/records.h: EF_VDSO_KEY. */
export const VDSO_KEY = toFileKey('0000000000000001');
const VDSO_NAME = '[vdso]';

/** The executables that BPF reported, by the key that BPF gives them; of too many the one that was not asked for longest is dropped. */
export class KnownExecutables {
  readonly #byKey: LRUCache<FileKey, Executable>;
  /** Apart from the others: BPF reports it never, so it must not be dropped. */
  #vdso: Executable | undefined;

  /** `onEvicted` hears of those that are dropped. */
  constructor(max: number, onEvicted: (key: FileKey) => void) {
    this.#byKey = new LRUCache({
      max,
      dispose: (_executable, key, reason) => {
        if (reason === 'evict') onEvicted(key);
      },
    });
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: FileKey): Executable | undefined {
    return key === VDSO_KEY ? this.#vdso : this.#byKey.get(key);
  }

  /** As `get`, without the vDSO; that it was asked for does not keep it. */
  peek(key: FileKey): Executable | undefined {
    return this.#byKey.peek(key);
  }

  /** All but the vDSO. */
  all(): Executable[] {
    return [...this.#byKey.values()];
  }

  add({ key, path, inode, size, ctimeNs, device }: FileRecord): Executable {
    const executable = newExecutable(key, path, { inode, size, ctimeNs, device });
    this.#byKey.set(key, executable);
    return executable;
  }

  addVdso(bytes: Uint8Array): Executable {
    const identity = { inode: 0n, size: BigInt(bytes.length), ctimeNs: 0n, device: 0 };
    this.#vdso = { ...newExecutable(VDSO_KEY, VDSO_NAME, identity), bytes, state: 'reading' };
    return this.#vdso;
  }

  /** Key of a known file, by what stat() shows. */
  keyOf({ inode, size, ctimeNs, device }: FileIdentity): FileKey | undefined {
    for (const { key, identity } of this.#byKey.values()) {
      const isSame = identity.inode === inode && identity.size === size && identity.ctimeNs === ctimeNs;
      if (isSame && identity.device === device) return key;
    }
    return undefined;
  }

  /** False where the bound on executables dropped it meanwhile: then BPF was told to forget it, too. */
  isCurrent(executable: Executable): boolean {
    return executable === this.#vdso || this.#byKey.peek(executable.key) === executable;
  }
}
