import { OutOfBounds } from '../base/byte-source.ts';
import { readNotes } from '../elf/notes.ts';

const NT_GNU_BUILD_ID = 3;
const MAX_BUILD_ID = 64;

/**
 * The GNU build ID among ELF notes, in hex; '' if there is none. For notes that come without an ELF file around
 * them: /sys/kernel/notes and /sys/module/NAME/notes.
 */
export function findGnuBuildId(notes: Uint8Array): string {
  try {
    for (const { name, type, descriptor } of readNotes(notes)) {
      const isBuildId = name === 'GNU' && type === NT_GNU_BUILD_ID;
      if (isBuildId && descriptor.length > 0 && descriptor.length <= MAX_BUILD_ID)
        return Buffer.from(descriptor).toString('hex');
    }
  } catch (error) {
    if (!(error instanceof OutOfBounds)) throw error;
  }
  return '';
}
