// Headers of answers and requests.
import { limits } from '../../core/limits';
import type { Operation } from '../../contract/operations';
import { isTagged } from './response_type';
import type { DocumentBuilder } from './builder';
import { usesProjectHeader } from './error_codes';
import type { Header, Parameter, Ref } from './document';
import { idSchema } from './id_schemas';

const integer = (description: string): Header => ({ description, schema: { type: 'integer', minimum: 0 } });

const RATE_HEADERS: Record<string, Header> = {
  'RateLimit-Limit': integer('Number of calls per window in the rate limit budget of this operation.'),
  'RateLimit-Remaining': integer('Number of calls left in the current window.'),
  'RateLimit-Reset': integer('Seconds until the current window ends.'),
  'RateLimit-Policy': {
    description: 'Number of calls and length of the window in seconds.',
    schema: { type: 'string', examples: ['"read";q=1200;w=60'] },
  },
};

const REQUEST_ID: Header = {
  description: 'Id of the request. It is also in problem documents.',
  required: true,
  schema: { type: 'string', pattern: '^req_[0-9a-hjkmnp-tv-z]{26}$' },
};
const ETAG: Header = {
  description: 'Version of the resource, for `If-None-Match` and `If-Match`.',
  schema: { type: 'string', pattern: '^"[\\x21\\x23-\\x7e]*"$' },
};
const LOCATION: Header = { description: 'URL of the new resource.', schema: { type: 'string', format: 'uri' } };
const REPLAYED: Header = {
  description: '`true` if this is the response to an earlier request with the same Idempotency-Key.',
  schema: { type: 'string', enum: ['true'] },
};
const PREFERENCE_APPLIED: Header = {
  description: 'The preference that was applied, for example `wait=30`.',
  schema: { type: 'string', pattern: '^wait=[0-9]+$' },
};
const DRY_RUN_ECHO: Header = {
  description: '`true` if the request was a dry run.',
  schema: { type: 'string', enum: ['true'] },
};
const RETRY_AFTER: Header = {
  description: 'Seconds to wait before trying again.',
  required: true,
  schema: { type: 'integer', minimum: 0 },
};

/** Headers of a problem document. */
export function commonHeaders(builder: DocumentBuilder, status: number): Record<string, Header | Ref> {
  const beforeAccount = status === 401 || status === 431;
  const headers = { 'X-Request-Id': REQUEST_ID, ...(!beforeAccount && RATE_HEADERS) };
  const retry = status === 429 || status === 503;
  const referred = refer(builder, retry ? { ...headers, 'Retry-After': RETRY_AFTER } : headers);
  // Only conflicts that end by themselves have Retry-After.
  return status === 409 ? { ...referred, 'Retry-After': { ...RETRY_AFTER, required: false } } : referred;
}

/** Headers of a success. */
export function successHeaders(builder: DocumentBuilder, operation: Operation, status: number): Record<string, Ref> {
  const headers: Record<string, Header> = { 'X-Request-Id': REQUEST_ID };
  if (operation.field.scope !== 'none') Object.assign(headers, RATE_HEADERS);
  if (isTagged(operation) || (operation.method !== 'GET' && status !== 204)) headers.ETag = ETAG;
  if (status === 201 && builder.readers.has(operation.id)) headers.Location = LOCATION;
  if (operation.method === 'POST') headers['Idempotent-Replayed'] = REPLAYED;
  if (builder.waits.has(operation.id)) headers['Preference-Applied'] = PREFERENCE_APPLIED;
  if (isRehearsable(operation)) headers['Dry-Run'] = DRY_RUN_ECHO;
  return refer(builder, headers);
}

function refer(builder: DocumentBuilder, headers: Record<string, Header>): Record<string, Ref> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, header]) => [name, builder.use('headers', name, () => header)]),
  );
}

/** Headers that a request of this operation may carry. */
export function requestHeaders(builder: DocumentBuilder, operation: Operation): Ref[] {
  const wanted: Parameter[] = [];
  if (usesProjectHeader(operation)) wanted.push(projectHeader(builder));
  if (operation.method === 'POST') wanted.push(IDEMPOTENCY_KEY);
  if (operation.method !== 'GET' && operation.method !== 'POST') wanted.push(IF_MATCH);
  if (isTagged(operation)) wanted.push(IF_NONE_MATCH);
  if (builder.waits.has(operation.id)) wanted.push(PREFER);
  if (isRehearsable(operation)) wanted.push(DRY_RUN);
  if (operation.field.live) wanted.push(LAST_EVENT_ID);
  return wanted.map((parameter) => builder.use('parameters', parameter.name, () => parameter));
}

function projectHeader(builder: DocumentBuilder): Parameter {
  const form = idSchema(builder, '', 'project_id');
  return {
    name: 'X-Svc-Project',
    in: 'header',
    description: 'Id of the project. Required with a personal key, optional with a project key.',
    required: false,
    schema: form?.schema ?? { type: 'string' },
    ...(form && { example: form.example }),
  };
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  description: [
    `Key that makes it safe to retry the request. For ${limits.idempotencyTtlHours} hours, requests with the same key`,
    'get the same response, and nothing is done twice.',
  ].join(' '),
  required: false,
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: limits.idempotencyKeyCharactersMax,
    pattern: '^[\\x21-\\x7e][\\x20-\\x7e]*$',
  },
};

const PREFER: Parameter = {
  name: 'Prefer',
  in: 'header',
  description: [
    'With `wait=N` (RFC 7240), the response waits until the resource has settled: at most N seconds, and never ' +
      'more than',
    `${limits.preferWaitSecondsMax}.`,
  ].join(' '),
  required: false,
  // No example: the console would prefill it, and make each call wait.
  schema: { type: 'string', pattern: '^[\\t\\x20-\\x7e]*$' },
};

/** A write that runs no further than its transaction. */
function isRehearsable({ method, field }: Operation): boolean {
  return method !== 'GET' && !field.errors.includes('dry_run_unsupported');
}

const DRY_RUN: Parameter = {
  name: 'Dry-Run',
  in: 'header',
  description: [
    'With `true` the request runs completely and is rolled back: the response is the one that the write would ' +
      'have had, and',
    'nothing is changed. It counts for the rate limit. `Idempotency-Key` and `Prefer` have no effect.',
  ].join(' '),
  required: false,
  schema: { type: 'string', enum: ['true', 'false'] },
};

const LAST_EVENT_ID: Parameter = {
  name: 'Last-Event-ID',
  in: 'header',
  description:
    'With `Accept: text/event-stream`, the id of the last event that the client received. The stream resumes after it.',
  required: false,
  schema: { type: 'string' },
};

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  description:
    'ETag of the version to change. If the resource has changed since, the request fails with `precondition_failed`.',
  required: false,
  schema: { type: 'string' },
};

const IF_NONE_MATCH: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  description: [
    'ETag of the version that the client has. If it is still current, the response is 304, which does not count toward',
    'the rate limit.',
  ].join(' '),
  required: false,
  schema: { type: 'string' },
};
