import { finished } from 'node:stream/promises';
import { ByteBudget } from '../net/byte-budget.ts';
import { gather } from '../net/gather.ts';
import { MAX_READ_MS, type ReaderLimits, ReaderProcess, readerScript } from '../workers/reader-process.ts';
import type { ImportFile } from './import-worker.ts';
import { MAX_IMPORTED_BYTES } from './limits.ts';

/** The file can't be read; the message says why. */
export class UnreadableFile extends Error {
  override name = 'UnreadableFile';
}

/** No process could be started to read it. */
export class NoReader extends Error {
  override name = 'NoReader';
}

/**
 * A file as an OTLP request, read by a process that ends with it.
 *
 * @throws UnreadableFile, NoReader
 */
export async function readFile(file: ImportFile, bytes: Uint8Array, limits?: ReaderLimits): Promise<Buffer> {
  const script = readerScript('import/import-worker.js');
  const reader = new ReaderProcess(script, [JSON.stringify(file)], 'streams', limits);
  const { child } = reader;
  const timer = setTimeout(
    () => reader.kill(`it takes more than ${MAX_READ_MS / 1000} seconds`),
    MAX_READ_MS,
  );
  const ended = new Promise<string>((resolve) => {
    child.once('error', ({ message }) => resolve(`its reader could not be started: ${message}`));
    child.once('close', (code, signal) => resolve(code === 0 ? '' : reader.explainEnd(code, signal)));
  });
  try {
    // Undefined where there were no descriptors for them.
    if (!child.stdin || !child.stdout) throw new NoReader(unreadable(file, await ended));
    // A reader that ended takes no more of it: how it ended says why.
    child.stdin.on('error', () => {}).end(bytes);
    const lease = new ByteBudget(2 * MAX_IMPORTED_BYTES).lease();
    // Its own time ends before these.
    const bounds = {
      maxBytes: MAX_IMPORTED_BYTES + 1,
      maxArrivalMs: 2 * MAX_READ_MS,
      maxStallMs: 2 * MAX_READ_MS,
    };
    const reply = await gather(child.stdout, { ...bounds, lease, gzip: false });
    const problem = await ended;
    if (problem !== '' || reply.length === 0) throw new UnreadableFile(unreadable(file, problem));
    if (reply[0] !== 0) throw new UnreadableFile(reply.subarray(1).toString('utf8'));
    return reply.subarray(1);
  } finally {
    clearTimeout(timer);
    reader.kill('it is not needed any more');
    if (child.stdin) await finished(child.stdin).catch(() => {});
  }
}

const unreadable = ({ fileName }: ImportFile, why: string): string =>
  `${fileName} could not be read: ${why || 'its reader said nothing'}`;
