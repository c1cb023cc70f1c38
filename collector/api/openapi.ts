import { ERROR, type Schema } from './schemas.ts';
import type { Route } from './v1.ts';

/** The OpenAPI 3.1 document of a table of routes. */
export function describeRoutes(routes: Readonly<Record<string, Route>>): Schema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'everyframe query API',
      version: '1.0.0',
      description: 'Reads only. Counts are events; an answer says on how many it stands.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(
      Object.entries(routes).map(([path, route]) => [path, { get: operation(path, route) }]),
    ),
  };
}

function operation(path: string, { summary, parameters, response }: Route): Schema {
  const content =
    response === undefined
      ? { '*/*': { schema: { type: 'string', format: 'binary' } } }
      : { 'application/json': { schema: response } };
  const error = { description: 'says what to change', content: { 'application/json': { schema: ERROR } } };
  return {
    operationId: path.slice(path.lastIndexOf('/') + 1),
    summary,
    parameters,
    responses: { 200: { description: 'the answer', content }, 400: error, 500: error },
  };
}
