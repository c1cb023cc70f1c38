/**
 * Probes that a program's authors have put into it. Section .note.stapsdt has a note for each place, of its address, that of
 * .stapsdt.base as it was linked (prelinking may have moved both), that of a counter of listeners or 0, provider, name and arguments.
 */
import { excerpt } from '../../common/base/printable.ts';
import type { ElfFile } from '../../common/elf/elf.ts';
import { readNotes } from '../../common/elf/notes.ts';
import { forEachSymbol, ignoreDamage, offsetOfCode, STT_OBJECT } from './file-symbols.ts';
import { answerOf, type FoundProbe, MAX_FOUND, type ProbeAnswer } from './probe-request.ts';
import { parseUsdtArguments } from './usdt-arguments.ts';

const NOTE_TYPE = 3;
/** Behind three addresses. */
const TEXTS_AT = 24;
const MAX_NOTES_BYTES = 16 << 20;
const MAX_SIMILAR = 20;

interface UsdtNote {
  provider: string;
  name: string;
  arguments: string;
  address: number;
  base: number;
  semaphore: number;
}

export function findUsdt(elf: ElfFile, { provider, name }: { provider: string; name: string }): ProbeAnswer {
  const section = elf.section('.note.stapsdt');
  const notes = section ? readUsdtNotes(elf.sectionData(section, MAX_NOTES_BYTES)) : [];
  const base = elf.section('.stapsdt.base')?.addr;
  const variables = new Variables(elf);
  const found: FoundProbe[] = [];
  let count = 0;
  for (const note of notes) {
    if (note.provider !== provider || note.name !== name) continue;
    const moved = base === undefined ? 0 : base - note.base;
    const address = note.address + moved;
    const offset = offsetOfCode(elf, address);
    const semaphore = note.semaphore === 0 ? 0 : elf.addressToFileOffset(note.semaphore + moved);
    if (offset === undefined || semaphore === undefined || ++count > MAX_FOUND) continue;
    const places = parseUsdtArguments(note.arguments, elf.machine, (symbol) =>
      variables.distance(symbol, address),
    );
    found.push({ offset, semaphore, arguments: places });
  }
  const all = [...new Set(notes.map((note) => excerpt(`${note.provider}:${note.name}`)))];
  return answerOf(found, all.slice(0, MAX_SIMILAR), count);
}

/** Few probes have one as an argument. */
class Variables {
  readonly #elf: ElfFile;
  #addresses: Map<string, number> | undefined;

  constructor(elf: ElfFile) {
    this.#elf = elf;
  }

  distance(name: string, from: number): number | undefined {
    this.#addresses ??= this.#read();
    const address = this.#addresses.get(name);
    return address === undefined ? undefined : address - from;
  }

  #read(): Map<string, number> {
    const addresses = new Map<string, number>();
    forEachSymbol(this.#elf, STT_OBJECT, (name, address) => void addresses.set(name, address));
    return addresses;
  }
}

/** Those before the damage, where there is some. */
function readUsdtNotes(bytes: Uint8Array): UsdtNote[] {
  const notes: UsdtNote[] = [];
  ignoreDamage(() => {
    for (const { name: owner, type, descriptor } of readNotes(bytes)) {
      if (owner !== 'stapsdt' || type !== NOTE_TYPE || descriptor.length <= TEXTS_AT) continue;
      const data = Buffer.from(descriptor);
      const word = (index: number): number => Number(data.readBigUInt64LE(8 * index));
      const texts = data.toString('utf8', TEXTS_AT).split('\0', 3);
      const [provider = '', name = '', places = ''] = texts;
      notes.push({ provider, name, arguments: places, address: word(0), base: word(1), semaphore: word(2) });
    }
  });
  return notes;
}
