/** File formats that the API writes. */
import { writeProfile } from '../../common/profile/formats/formats.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { makePage, makeSvg } from './pictures.ts';

const TITLE = 'everyframe';

interface ExportFormatEntry {
  type: string;
  ending: string;
  write(profile: Profile): Uint8Array;
}

/** As `convert` writes it. */
const asFile = (type: string, ending: string): ExportFormatEntry => ({
  type,
  ending,
  write: (profile) => writeProfile(`x.${ending}`, profile),
});

export const EXPORT_FORMATS = {
  pprof: asFile('application/octet-stream', 'pb.gz'),
  folded: asFile('text/plain; charset=utf-8', 'folded'),
  speedscope: asFile('application/json', 'speedscope.json'),
  otlp: asFile('application/x-protobuf', 'otlp'),
  firefox: asFile('application/json', 'firefox.json'),
  perfetto: asFile('application/json', 'trace.json'),
  text: asFile('text/plain; charset=utf-8', 'txt'),
  html: {
    type: 'text/html; charset=utf-8',
    ending: 'html',
    write: (profile) => Buffer.from(makePage(TITLE, profile)),
  },
  svg: { type: 'image/svg+xml', ending: 'svg', write: (profile) => Buffer.from(makeSvg(TITLE, profile)) },
} as const satisfies Record<string, ExportFormatEntry>;

export type ExportFormat = keyof typeof EXPORT_FORMATS;
