/** A thread that names its share of many addresses: see parallel-namer.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { AddressNamer } from './address-namer.ts';
import { withElf } from './open-elf.ts';
import type { NamingShare } from './parallel-namer.ts';
import { symbolText } from './symbol-text.ts';

const { path, addresses, json } = workerData as NamingShare;
const texts = await withElf(path, async (elf) => {
  const namer = new AddressNamer(elf, path, undefined, () => {});
  const chains = await namer.lookUp(addresses);
  namer.close();
  return chains.map((frames, i) => symbolText(addresses[i]!, frames, json));
});
parentPort!.postMessage(texts);
