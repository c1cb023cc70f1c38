/**
 * How a thread comes to its ErtsSchedulerData, and where that has the Erlang process, read out of the machine code of
 * enif_thread_type(). It asks for the former, and reads its type, in front of which stands the process:
 *
 *   call erts_get_scheduler_data; …; mov type(%rax),%eax        mov key(%rip),%edi; jmp ethr_tsd_get
 *   bl erts_get_scheduler_data; …; ldr w0,[x0,#type]            adrp x0,key; ldr w0,[x0,#key]; b ethr_tsd_get
 */
import { bytesAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile, Machine } from '../../../common/elf/elf.ts';
import { follow, isCall, targetOf } from '../arm64-code.ts';

export interface SchedulerThread {
  /** Address of the pthread key's number. */
  key: number;
  /** Offset of the process that runs. */
  currentProcess: number;
}

interface Code {
  address: number;
  bytes: Buffer;
}

/** The function that is called first, and what is read from its result. */
interface TypeCode {
  callee: number;
  type: number;
}

interface Decoder {
  readType(code: Code): TypeCode | undefined;
  /** Address of the key. */
  readKey(code: Code): number | undefined;
}

const CODE_BYTES = 64;
const PROCESS_BYTES = 8;
/** How far into the callee it comes. */
const KEY_WITHIN = 16;

const DECODERS: Readonly<Record<Machine, Decoder>> = {
  x86_64: {
    readType({ address, bytes }) {
      const call = bytes.indexOf(0xe8);
      const type = bytes.indexOf(Buffer.from([0x8b, 0x80]), call);
      if (call < 0 || type < 0 || type + 6 > bytes.length) return undefined;
      return { callee: address + call + 5 + bytes.readInt32LE(call + 1), type: bytes.readInt32LE(type + 2) };
    },
    readKey({ address, bytes }) {
      const at = bytes.indexOf(Buffer.from([0x8b, 0x3d]));
      return at < 0 || at > KEY_WITHIN ? undefined : address + at + 6 + bytes.readInt32LE(at + 2);
    },
  },
  aarch64: {
    readType({ address, bytes }) {
      const call = findInstruction(bytes, 0, isCall);
      const type = call < 0 ? -1 : findInstruction(bytes, call, isLoadOfX0);
      if (type < 0) return undefined;
      return {
        callee: targetOf(bytes.readUInt32LE(call), address + call),
        // ldr w0,[x0,#distance]
        type: ((bytes.readUInt32LE(type) >>> 10) & 0xfff) * 4,
      };
    },
    readKey: (code) => follow(code, (x0) => (x0?.isLoaded && x0.base === 'file' ? x0.offset : undefined)),
  },
};

export function findSchedulerThread(elf: ElfFile, address: number): SchedulerThread | undefined {
  const decoder = DECODERS[elf.machine];
  const code = codeAt(elf, address);
  const found = code && decoder.readType(code);
  const callee = found && codeAt(elf, found.callee);
  const key = callee && decoder.readKey(callee);
  return key === undefined ? undefined : { key, currentProcess: found!.type - PROCESS_BYTES };
}

function codeAt(elf: ElfFile, address: number): Code | undefined {
  const bytes = bytesAt(elf, address, CODE_BYTES);
  return bytes && { address, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) };
}

const isLoadOfX0 = (word: number): boolean => (word & 0xffc003ff) >>> 0 === 0xb9400000;

/** Where it stands from `from` on; -1: nowhere. */
function findInstruction(bytes: Buffer, from: number, isWanted: (word: number) => boolean): number {
  for (let at = from; at + 4 <= bytes.length; at += 4) if (isWanted(bytes.readUInt32LE(at))) return at;
  return -1;
}
