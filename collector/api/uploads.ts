/** Shared code of the routes that take files. */
import type { IncomingMessage } from 'node:http';
import { HttpError } from '../net/read-body.ts';

const MAX_NAME_LENGTH = 255;

/**
 * A page of another origin can post here without asking only what a form can: not this content type. The browser
 * names the page's origin with every POST.
 *
 * @throws HttpError
 */
export function checkOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  if (origin !== undefined && !/^https?:\/\//.test(origin)) throw foreign(origin);
  if (origin !== undefined && new URL(origin).host !== host) throw foreign(origin);
  const type = (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/octet-stream')
    throw new HttpError(415, `content-type is "${type}": send application/octet-stream`);
}

const foreign = (origin: string): HttpError =>
  new HttpError(403, `requests from another page (${origin}) are not accepted`);

/** @throws HttpError */
export function readFileName(parameters: URLSearchParams): string {
  const name = parameters.get('name') ?? '';
  if (name === '' || name.length > MAX_NAME_LENGTH)
    throw new HttpError(400, `name is "${name}": give the file's name, whose ending is its format`);
  return name;
}
