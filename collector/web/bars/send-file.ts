/** Files of a person's to the collector: profiles to be stored, and programs that name what is stored. */

import { formatCount, plural } from '../../../common/flame/format.ts';
import type { ErrorResponse, SymbolsResult } from '../../api/types.ts';
import type { ImportResult } from '../../import/import-result.ts';
import type { TimeRange } from '../../store/store.ts';
import { addressOf } from '../state/page-address.ts';

export interface FileOutcome {
  fileName: string;
  text: string;
  isBad: boolean;
  /** When what was in it happened. */
  span?: TimeRange;
}

const ELF_MAGIC = '\x7fELF';

/** Never rejects: what went wrong is in the text. */
export async function sendFile(file: File): Promise<FileOutcome> {
  const fileName = file.name;
  try {
    const start = await file.slice(0, ELF_MAGIC.length).text();
    return start === ELF_MAGIC
      ? describeSymbols(await post<SymbolsResult>('symbols', { name: fileName }, file))
      : describeImport(
          await post<ImportResult>('import', { name: fileName, modified: String(file.lastModified) }, file),
        );
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { fileName, text, isBad: true };
  }
}

async function post<T>(path: string, parameters: Record<string, string>, body: File): Promise<T> {
  const response = await fetch(addressOf(`api/v1/${path}?${new URLSearchParams(parameters)}`), {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/octet-stream' },
  }).catch(() => {
    throw new Error('the collector could not be reached, or the file could not be read: drop it again');
  });
  if (response.ok) return response.json();
  const { error } = (await response.json().catch(() => ({ error: response.statusText }))) as ErrorResponse;
  throw new Error(error);
}

export function describeImport(result: ImportResult): FileOutcome {
  const { fileName, samples, rejected, fromMs, toMs, repeated } = result;
  const reasons = rejected.map(({ reason, count }) => `${plural(count, 'sample')} left out: ${reason}`);
  const stored = repeated
    ? 'imported before, nothing added'
    : samples === 0
      ? 'nothing of it is stored'
      : `${plural(samples, 'sample')} imported`;
  const isBad = samples === 0 && !repeated;
  return {
    fileName,
    text: [stored, ...reasons].join('; '),
    isBad,
    ...(!isBad && { span: { fromMs, toMs } }),
  };
}

export function describeSymbols({ fileName, sources, nameless, named }: SymbolsResult): FileOutcome {
  const kept = `names from ${sources.join(' and ')} are kept`;
  const text =
    nameless === 0
      ? `${kept}; no stored stack needs them: samples that arrive without names will`
      : `${kept}; ${formatCount(named)} of ${plural(nameless, 'nameless address', 'nameless addresses')} named`;
  return { fileName, text, isBad: nameless > 0 && named === 0 };
}
