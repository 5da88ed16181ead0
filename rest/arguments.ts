// The arguments of an operation as a request carries them: path, query and body. Syntax only; the validator checks
// fields.
import type { IncomingMessage } from 'node:http';
import { validationFailed } from '../core/errors';
import { acceptable, prefersEvents } from './conditional';
import { parseBody, parseQuery } from './request';
import type { Match } from './router';

/**
 * @throws not_acceptable, malformed_request, invalid_query_parameter, what parseBody throws, validation_failed for a
 * body where none is taken
 */
export async function readArguments(
  request: IncomingMessage,
  { operation, params }: Match,
  search: string,
): Promise<Record<string, unknown>> {
  const { field } = operation;
  const { accept } = request.headers;
  if (!field.live || !prefersEvents(accept)) acceptable(accept);
  const query = parseQuery(search, operation);
  const body = operation.method === 'GET' || operation.method === 'DELETE' ? {} : await parseBody(request);
  const args: Record<string, unknown> = { ...query };
  for (const { name, argument } of operation.params) args[argument] = params[name];
  if (field.body) args[field.body.argument] = body;
  else requireEmpty(body);
  return args;
}

function requireEmpty(body: Record<string, unknown>): void {
  const names = Object.keys(body);
  if (!names.length) return;
  throw validationFailed(
    names.map((field) => ({ field, code: 'unknown_field', detail: 'is not a field of this body' })),
  );
}
