/** Spans of distributed traces: the IDs that samples are linked to. */
import { intern } from './intern.ts';
import { type Link, NO_LINK } from './profile.ts';

const TRACE_ID = /^(?!0*$)[0-9a-f]{32}$/;
const SPAN_ID = /^(?!0*$)[0-9a-f]{16}$/;

/** As hex digits of any case; '' where the text is none, or all zero. */
export function toTraceId(text: string): string {
  const id = text.toLowerCase();
  return TRACE_ID.test(id) ? id : '';
}

/** The same of a span. */
export function toSpanId(text: string): string {
  const id = text.toLowerCase();
  return SPAN_ID.test(id) ? id : '';
}

/** In the URL of whatever shows traces: the ID of one goes there. */
export const TRACE_ID_PLACE = '{trace_id}';

export const linkKey = ({ traceId, spanId }: Link): string => `${traceId}/${spanId}`;

/** A table of links while it is made: each is in it once, and a link without IDs is entry 0. */
export class LinkTable {
  readonly links: Link[] = [NO_LINK];
  readonly #indices = new Map<string, number>([[linkKey(NO_LINK), 0]]);

  indexOf(link: Link): number {
    return intern(this.#indices, linkKey(link), this.links, () => link);
  }
}
