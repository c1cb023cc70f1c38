import { IMPORT_PATH } from './import-route.ts';
import * as schema from './schemas.ts';
import { SYMBOLS_PATH } from './symbol-route.ts';
import type { Route } from './v1.ts';

type Schema = schema.Schema;

/** Routes that take files: those of uploads.ts. */
const UPLOADS: Readonly<Record<string, Pick<Route, 'summary' | 'parameters' | 'response'>>> = {
  [IMPORT_PATH]: {
    summary: 'Stores the samples of a profile; its format is told by its name',
    parameters: [
      schema.text('name', "the file's name, such as cpu.pb.gz", true),
      schema.text(
        'at',
        'when the newest sample is to have happened: now, -1h, milliseconds since 1970, or ISO 8601',
      ),
      schema.text('modified', 'the same for a file that holds no times: when it was written'),
    ],
    response: schema.IMPORTED,
  },
  [SYMBOLS_PATH]: {
    summary: 'Names native frames that arrived without a name: those that are stored and those to come',
    parameters: [schema.text('name', "the file's name", true)],
    response: schema.TAKEN_SYMBOLS,
  },
};

/** The OpenAPI 3.1 document of a table of routes. */
export function describeRoutes(routes: Readonly<Record<string, Route>>): Schema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'everyframe query API',
      version: '1.0.0',
      description: 'Counts are events; an answer says on how many it stands.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths: {
      ...mapValues(routes, (path, route) => ({ get: operation(path, route) })),
      ...mapValues(UPLOADS, (path, upload) => ({
        post: { ...operation(path, upload), requestBody: { required: true, content: FILE } },
      })),
    },
  };
}

const FILE = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

const mapValues = <T>(record: Readonly<Record<string, T>>, map: (key: string, value: T) => Schema): Schema =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(key, value)]));

function operation(
  path: string,
  { summary, parameters, response }: Pick<Route, 'summary' | 'parameters' | 'response'>,
): Schema {
  const content =
    response === undefined
      ? { '*/*': { schema: { type: 'string', format: 'binary' } } }
      : { 'application/json': { schema: response } };
  const error = {
    description: 'says what to change',
    content: { 'application/json': { schema: schema.ERROR } },
  };
  return {
    operationId: path.slice(path.lastIndexOf('/') + 1),
    summary,
    parameters,
    responses: { 200: { description: 'the answer', content }, '4XX': error, '5XX': error },
  };
}
