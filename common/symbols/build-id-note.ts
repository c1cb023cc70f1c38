/** NT_GNU_BUILD_ID of the ELF note format: name size, descriptor size, type (u32 each), name, descriptor. */
const GNU_BUILD_ID = 3;
const HEADER = 12;
const MAX_BUILD_ID = 64;

const align4 = (n: number): number => (n + 3) & ~3;

/**
 * The GNU build ID among ELF notes, in hex; '' if there is none. For notes that come without an ELF file around
 * them: /sys/kernel/notes and /sys/module/NAME/notes.
 */
export function findGnuBuildId(notes: Uint8Array): string {
  const view = new DataView(notes.buffer, notes.byteOffset, notes.byteLength);
  let at = 0;
  while (at + HEADER <= notes.length) {
    const nameSize = view.getUint32(at, true);
    const size = view.getUint32(at + 4, true);
    const type = view.getUint32(at + 8, true);
    const data = at + HEADER + align4(nameSize);
    if (nameSize > notes.length || size > notes.length || data + size > notes.length) return '';
    const isGnu =
      nameSize === 4 && String.fromCharCode(...notes.subarray(at + HEADER, at + HEADER + 4)) === 'GNU\0';
    if (isGnu && type === GNU_BUILD_ID && size > 0 && size <= MAX_BUILD_ID) {
      return Array.from(notes.subarray(data, data + size), (byte) => byte.toString(16).padStart(2, '0')).join(
        '',
      );
    }
    at = data + align4(size);
  }
  return '';
}
