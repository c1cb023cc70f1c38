/** What the API writes files in. */
import { writeFolded } from '../../common/profile/folded.ts';
import { encodeOtlp } from '../../common/profile/otlp-encode.ts';
import { writePprof } from '../../common/profile/pprof.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { writeSpeedscope } from '../query/speedscope.ts';
import { makePage, makeSvg } from './pictures.ts';

const TITLE = 'everyframe';

export const EXPORT_FORMATS = {
  pprof: { type: 'application/octet-stream', ending: 'pb.gz', write: writePprof },
  folded: { type: 'text/plain; charset=utf-8', ending: 'folded', write: writeFolded },
  speedscope: { type: 'application/json', ending: 'speedscope.json', write: writeSpeedscope },
  otlp: {
    type: 'application/x-protobuf',
    ending: 'otlp',
    write: (profile: Profile) => encodeOtlp(profile, { scopeName: 'everyframe', scopeVersion: '' }),
  },
  html: {
    type: 'text/html; charset=utf-8',
    ending: 'html',
    write: (profile: Profile) => Buffer.from(makePage(TITLE, profile)),
  },
  svg: {
    type: 'image/svg+xml',
    ending: 'svg',
    write: (profile: Profile) => Buffer.from(makeSvg(TITLE, profile)),
  },
} as const;

export type ExportFormat = keyof typeof EXPORT_FORMATS;
