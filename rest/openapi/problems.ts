// Problem documents (RFC 9457): one schema of all members, narrowed per response to the codes that it can carry.
import { errors, type ErrorCode, type FieldErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Ref, Response, Schema } from './document';
import { commonHeaders } from './headers';

const REQUEST_ID = '^req_[0-9a-hjkmnp-tv-z]{26}$';

// Its keys are checked against the type, so that a new code can't be forgotten here.
const fieldErrorCodes: Record<FieldErrorCode, string> = {
  required: 'missing, or null where null is not allowed',
  unknown_field: 'not a field of this body',
  immutable: 'exists but cannot be changed',
  invalid_type: 'wrong JSON type',
  invalid_format: 'does not match the pattern or format',
  too_short: 'too few characters',
  too_long: 'too many characters',
  too_small: 'number below its bound',
  too_large: 'number above its bound',
  too_few: 'too few list entries',
  too_many: 'too many list entries',
  not_in_enum: 'not one of the allowed values',
  duplicate: 'twice in the same list',
  mutually_exclusive: 'only one of several fields may be given',
  depends_on: 'needs another field, or another value of one',
};

const text = (description: string): Schema => ({ type: 'string', description });
const count = (description: string): Schema => ({ type: 'integer', description });
const words = (description: string): Schema => ({ type: 'array', items: { type: 'string' }, description });
const moment = (description: string): Schema => ({ type: 'string', format: 'date-time', description });

/** Members beyond the standard ones, with the code that brings them. */
function extraMembers(builder: DocumentBuilder): Record<string, Schema> {
  return {
    errors: {
      type: 'array',
      items: fieldErrorRef(builder),
      description: '`validation_failed`: every mistake of the body.',
    },
    parameter: text('`invalid_query_parameter`: its name.'),
    required_scope: text('`insufficient_scope`: the scope that the operation needs.'),
    token_scopes: words('`insufficient_scope`: the scopes of the key.'),
    required_role: text('`role_not_permitted`: the least role that may do this.'),
    resource: text('`quota_exceeded`: what is limited.'),
    used: count('`quota_exceeded`: how much is in use.'),
    limit: count('`quota_exceeded`: how much is allowed.'),
    field: text('`name_taken`, `reference_not_found`: the field of the body.'),
    resource_id: text('`already_exists`: the id of what exists.'),
    resource_status: text('`invalid_state`, `resource_busy`: the present status of the resource.'),
    allowed_statuses: words('`invalid_state`: statuses in which this is possible.'),
    dependents: {
      type: 'array',
      items: dependentRef(builder, 'ProblemDependent'),
      description: '`resource_in_use`: what depends on the resource.',
    },
    resources: {
      type: 'array',
      items: countRef(builder),
      description: '`project_not_empty`: what the project still holds.',
    },
    keys: words('`env_key_conflict`: the variables that are set already.'),
    managed_by: text('`env_key_managed`: the id of the attachment.'),
    regions: words('`capacity_unavailable`: regions where it fits.'),
    limit_bytes: count('`payload_too_large`: largest body in bytes.'),
    current_size_gb: count('`volume_size_must_increase`: the present size.'),
    requested_size_gb: count('`volume_size_must_increase`: the size asked for.'),
    min_gb: count('`volume_size_out_of_range`: smallest size.'),
    max_gb: count('`volume_size_out_of_range`: largest size.'),
    max_instances: count('`scale_out_of_range`: most instances.'),
    engine: text('`engine_feature_unsupported`: the engine.'),
    feature: text('`engine_feature_unsupported`: what it lacks.'),
    available_versions: words('`engine_version_unsupported`: versions that can be reached.'),
    earliest: moment('`point_in_time_unavailable`: start of the window.'),
    latest: moment('`point_in_time_unavailable`: end of the window.'),
    record_errors: words('`record_invalid`: what is wrong with the record.'),
    line: count('`zone_file_invalid`: the line that cannot be read.'),
  };
}

/** The response of one status with the codes it can carry: a component where all operations share it by name. */
export function problemResponse(builder: DocumentBuilder, status: number, codes: ErrorCode[]): Response | Ref {
  const [first] = codes;
  const name = codes.map(pascal).join('Or');
  if (codes.length > 3 || !first) return makeResponse(builder, status, codes);
  return builder.use('responses', name, () => makeResponse(builder, status, codes));
}

function makeResponse(builder: DocumentBuilder, status: number, codes: ErrorCode[]): Response {
  const schema: Schema = {
    allOf: [
      problemRef(builder),
      {
        type: 'object',
        properties: { status: { type: 'integer', enum: [status] }, code: { type: 'string', enum: codes } },
      },
    ],
  };
  return {
    description:
      codes.length === 1
        ? errors[codes[0] as ErrorCode].description
        : codes.map((code) => `* \`${code}\`: ${errors[code].title}`).join('\n'),
    headers: commonHeaders(builder, status),
    content: { 'application/problem+json': { schema } },
  };
}

function problemRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'Problem', () => ({
    type: 'object',
    description: 'A problem document (RFC 9457). `code` is stable; which further members it brings depends on it.',
    properties: {
      type: { type: 'string', format: 'uri', description: 'Address that describes the code.' },
      title: text('The code in words.'),
      status: count('The HTTP status.'),
      detail: text('What is wrong in this case.'),
      instance: text('Path of the request.'),
      code: text('Stable code, listed at /v2/errors.'),
      request_id: {
        type: 'string',
        pattern: REQUEST_ID,
        description: 'The X-Request-Id of the answer; quote it to support.',
      },
      retryable: { type: 'boolean', description: 'The same request may succeed later without a change.' },
      ...extraMembers(builder),
    },
    required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id', 'retryable'],
  }));
}

function fieldErrorRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'FieldError', () => ({
    type: 'object',
    description: 'One mistake of a body.',
    properties: {
      field: {
        type: 'string',
        description: 'Dotted path of the field, empty for the body itself.',
        examples: ['source.branch'],
      },
      code: fieldErrorCodeRef(builder),
      detail: text('The mistake in words.'),
    },
    required: ['field', 'code', 'detail'],
  }));
}

function fieldErrorCodeRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'FieldErrorCode', () => ({
    type: 'string',
    description: Object.entries(fieldErrorCodes)
      .map(([code, meaning]) => `* \`${code}\`: ${meaning}`)
      .join('\n'),
    enum: Object.keys(fieldErrorCodes),
  }));
}

function dependentRef(builder: DocumentBuilder, name: string): Schema {
  return builder.use('schemas', name, () => ({
    type: 'object',
    description: 'Something that depends on the resource.',
    properties: {
      type: text('Kind of the dependent, lower case.'),
      id: text('Its id.'),
      name: { type: ['string', 'null'], description: 'Its name, where it has one.' },
    },
    required: ['type', 'id'],
  }));
}

function countRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'ProblemResourceCount', () => ({
    type: 'object',
    description: 'Resources of one kind.',
    properties: {
      resource: text('What is counted, as in the usage of a project.'),
      count: count('How many there are.'),
    },
    required: ['resource', 'count'],
  }));
}

const pascal = (code: string): string =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
