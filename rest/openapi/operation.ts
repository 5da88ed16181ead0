// One operation of the document.
import { describeAuthorisation } from '../../contract/authorisation';
import type { Operation } from '../../contract/operations';
import { responseType, isTagged } from './response_type';
import type { DocumentBuilder } from './builder';
import { codeSamples } from './code_samples';
import { codesOf } from './error_codes';
import type { OperationObject, Ref, RequestBody, Response, Schema } from './document';
import { answerExamples, streamExamples } from './answer_examples';
import { bodyExample } from './examples';
import { withoutUndefined } from './scalar_schemas';
import { successHeaders } from './headers';
import { linksOf } from './links';
import { parametersOf } from './parameters';
import { anyProblemRef, problemResponse } from './problems';
import { securityOf } from './security';
import { answerSchema, inputRef } from './schemas';

const EVENT_STREAM = [
  'Server-sent events. `data` is an entry of the list as JSON, and `id` is the position from which the stream can be',
  'resumed. Entries are sent as they are written. The last event, `problem`, is a problem document that says why the',
  'stream ended.',
].join(' ');

export function operationObject(builder: DocumentBuilder, operation: Operation): OperationObject {
  const { field } = operation;
  const parameters = parametersOf(builder, operation);
  const body = requestBody(builder, operation);
  return withoutUndefined({
    operationId: operation.id,
    summary: operation.summary,
    description: [field.definition.description ?? operation.summary, describeAuthorisation(field)].join('\n\n'),
    tags: [operation.group],
    'x-extension': operation.extension || undefined,
    security: securityOf(field.scope),
    'x-required-scope': field.scope,
    'x-destroys': field.destroys || undefined,
    'x-reversible-by': field.reversibleBy ?? undefined,
    parameters: parameters.length ? parameters : undefined,
    'x-codeSamples': codeSamples(operation, parameters, body),
    requestBody: body,
    responses: responsesOf(builder, operation),
  });
}

function requestBody(builder: DocumentBuilder, { field }: Operation): RequestBody | undefined {
  if (!field.body) return undefined;
  const { type, required } = field.body;
  return {
    required,
    content: { 'application/json': { schema: inputRef(builder, type), example: bodyExample(builder, type) } },
  };
}

function responsesOf(builder: DocumentBuilder, operation: Operation): Record<string, Response | Ref> {
  const responses: Record<string, Response | Ref> = {};
  for (const status of [...operation.statuses].sort()) responses[status] = success(builder, operation, status);
  if (isTagged(operation))
    responses[304] = {
      description: 'Not modified: the version in `If-None-Match` is current.',
      headers: successHeaders(builder, operation, 304),
    };
  for (const [status, codes] of codesOf(builder, operation))
    responses[status] = problemResponse(builder, status, codes);
  return responses;
}

function success(builder: DocumentBuilder, operation: Operation, status: number): Response {
  const bare = { description: describe(operation, status), headers: successHeaders(builder, operation, status) };
  if (status === 204) return bare;
  const content: Response['content'] = {
    'application/json': {
      schema: answerSchema(builder, operation.field.definition.type),
      examples: answerExamples(builder, operation.field.definition.type),
    },
  };
  if (operation.field.live)
    content['text/event-stream'] = {
      schema: {
        type: 'string',
        description: EVENT_STREAM,
        contentMediaType: 'application/json',
        contentSchema: { anyOf: [rowSchema(builder, operation), anyProblemRef(builder)] },
      },
      examples: streamExamples(builder, operation.field.definition.type),
    };
  return withoutUndefined({ ...bare, content, links: status === 201 ? linksOf(builder, operation) : undefined });
}

/** Of an entry of a list. */
function rowSchema(builder: DocumentBuilder, { field }: Operation): Schema {
  const { $ref = '' } = answerSchema(builder, field.definition.type);
  const list = builder.components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
  return list?.properties?.data?.items ?? {};
}

function describe(operation: Operation, status: number): string {
  const noun = nounOf(operation);
  if (status === 201) return `The created ${noun}.`;
  if (status === 202) return `The ${noun} with its transitional status. The change continues in the background.`;
  if (status === 204) return 'The resource was deleted. The response has no body.';
  if (operation.method !== 'GET') return `The ${noun} after the change.`;
  return operation.path.endsWith('}')
    ? `The requested ${noun}.`
    : (responseType(operation)?.description ?? `The ${noun}.`);
}

/** `DatabaseEndpoint` -> "database endpoint". */
function nounOf(operation: Operation): string {
  const name = responseType(operation)?.name ?? 'resource';
  return name.replace(/(?<=[a-z])[A-Z]/g, ' $&').toLowerCase();
}
