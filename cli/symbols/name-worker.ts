/** A thread that names its share of many addresses: see parallel-namer.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { AddressNamer } from './address-namer.ts';
import { withElf } from './open-elf.ts';
import type { NamingShare } from './parallel-namer.ts';

const { path, addresses, json } = workerData as NamingShare;
const parts = await withElf(path, async (elf) => {
  const namer = new AddressNamer(elf, path, undefined, () => {});
  const answers = await namer.answer(addresses, json);
  namer.close();
  return answers;
});
parentPort!.postMessage(
  parts,
  parts.chunks.map((chunk) => chunk.buffer as ArrayBuffer),
);
