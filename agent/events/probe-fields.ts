/** Where the numbers of an event are at one of its places. */
import { CannotProfile } from '../base/cannot-profile.ts';
import type { ArgumentPlace, UserField } from './event-field.ts';
import type { ProbeSpec } from './event-spec.ts';
import type { SiteFields } from './probe-site.ts';

/** Undefined: the event needs none. Throws {@link CannotProfile}. */
export function fieldsOf(spec: ProbeSpec, places: readonly ArgumentPlace[] = []): SiteFields | undefined {
  if (!('filter' in spec) || (spec.value === undefined && !spec.filter)) return undefined;
  return {
    ...(spec.value !== undefined && { value: findField(spec.text, spec.value, places) }),
    ...(spec.filter && { filter: findField(spec.text, spec.filter.field, places) }),
  };
}

/** `arg0`, or a part of it: `arg0:i32`. */
function findField(event: string, field: string, places: readonly ArgumentPlace[]): UserField {
  const [, argument, sign, bits] = /^arg(\d+)(?::([iu])(\d+))?$/i.exec(field)!;
  const place = places[Number(argument)];
  if (!place) throw new CannotProfile(`${event}: there is no arg${argument}: ${whatThereIs(places.length)}`);
  if (place.kind === 'unreadable')
    throw new CannotProfile(`${event}: arg${argument} is "${place.text}" there, which can't be read`);
  if (bits === undefined) return place;
  const bytes = Number(bits) / 8;
  // behind an argument stands another variable: a wider part has the argument's value
  return bytes > place.bytes ? place : { ...place, bytes, isSigned: sign?.toLowerCase() === 'i' };
}

const whatThereIs = (count: number): string =>
  count === 0 ? 'it has no arguments' : `its arguments are arg0 to arg${count - 1}`;
