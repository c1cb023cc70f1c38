/** `query export`: what is seen, as a file. */
import { EXPORT_FORMATS, type ExportFormat } from '../../collector/api/export-formats.ts';
import { checkOutputFile, writeOutput } from '../output/output-file.ts';
import { ask, type CollectorFlags, fetchFile, type Query } from './query-client.ts';
import { type Basis, describeBasis } from './query-text.ts';

export interface ExportFlags {
  output: string;
  format?: string | undefined;
  force?: boolean;
}

/** @throws Error as `ask`, and where the file can't be written or its name says no format */
export async function exportFile(collector: CollectorFlags, query: Query, flags: ExportFlags): Promise<void> {
  const format = flags.format ?? formatOf(flags.output);
  checkOutputFile(flags.output, flags);
  const basis = await ask<Basis>(collector, 'top', { ...query, limit: 1 });
  if (basis.samples === 0) process.stderr.write(`everyframe: ${describeBasis(basis)}\n`);
  await writeOutput(flags.output, await fetchFile(collector, 'export', { ...query, format }), flags);
}

const entries = Object.entries(EXPORT_FORMATS) as [ExportFormat, { ending: string }][];

export function formatOf(file: string): ExportFormat {
  const found = entries.find(([, { ending }]) => file.endsWith(`.${ending}`));
  if (found !== undefined) return found[0];
  const endings = entries.map(([, { ending }]) => `.${ending}`).join(', ');
  throw new Error(
    `${file}: name the file with an ending that shows its format (${endings}), or give --format`,
  );
}
