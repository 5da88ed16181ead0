// Problem documents (RFC 9457): one schema of all members, narrowed per response to the codes that it can carry.
import { errors, type ErrorCode, type FieldErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Ref, Response, Schema } from './document';
import { commonHeaders } from './headers';
import { problemExamples } from './problem_examples';

const REQUEST_ID = '^req_[0-9a-hjkmnp-tv-z]{26}$';

// Its keys are checked against the type, so that a new code can't be forgotten here.
const fieldErrorCodes: Record<FieldErrorCode, string> = {
  required: 'The field is missing, or it is null and must not be.',
  unknown_field: 'The body has no field of this name.',
  immutable: 'The field cannot be changed.',
  invalid_type: 'The value has the wrong JSON type.',
  invalid_format: 'The value does not match the pattern or format.',
  too_short: 'The text is too short.',
  too_long: 'The text is too long.',
  too_small: 'The number is below the minimum.',
  too_large: 'The number is above the maximum.',
  too_few: 'The list has too few entries.',
  too_many: 'The list has too many entries.',
  not_in_enum: 'The value is not one of the allowed values.',
  duplicate: 'The list contains the value twice.',
  mutually_exclusive: 'Only one of several fields may be given.',
  depends_on: 'The field requires another field, or another value of it.',
};

const text = (description: string): Schema => ({ type: 'string', description });
const count = (description: string): Schema => ({ type: 'integer', description });
const stringsSchema = (description: string): Schema => ({ type: 'array', items: { type: 'string' }, description });
const moment = (description: string): Schema => ({ type: 'string', format: 'date-time', description });

/** Members beyond the standard ones, with the code that brings them. */
function extraMembers(builder: DocumentBuilder): Record<string, Schema> {
  return {
    errors: {
      type: 'array',
      items: fieldErrorRef(builder),
      description: '`validation_failed`: all errors in the body.',
    },
    parameter: text('`invalid_query_parameter`: name of the query parameter.'),
    required_scope: text('`insufficient_scope`: scope that the operation requires.'),
    token_scopes: stringsSchema('`insufficient_scope`: scopes of the key.'),
    required_role: text('`role_not_permitted`: lowest role that may call the operation.'),
    resource: text('`quota_exceeded`: name of the quota.'),
    used: count('`quota_exceeded`: current usage.'),
    limit: count('`quota_exceeded`: limit.'),
    field: text('`name_taken`, `reference_not_found`: path of the field in the body.'),
    resource_id: text('`already_exists`: id of the existing resource.'),
    resource_status: text('`invalid_state`, `resource_busy`: current status of the resource.'),
    allowed_statuses: stringsSchema('`invalid_state`: statuses that allow the operation.'),
    dependents: {
      type: 'array',
      items: dependentRef(builder, 'ProblemDependent'),
      description: '`resource_in_use`: resources that depend on the resource.',
    },
    resources: {
      type: 'array',
      items: countRef(builder),
      description: '`project_not_empty`: resources that the project still contains.',
    },
    keys: stringsSchema('`env_key_conflict`: variables that are already set.'),
    managed_by: text('`env_key_managed`: id of the attachment.'),
    regions: stringsSchema('`capacity_unavailable`: regions that have capacity.'),
    ...detailMembers(),
  };
}

/** Members that say what would have been possible. */
function detailMembers(): Record<string, Schema> {
  return {
    limit_bytes: count('`payload_too_large`: maximum size of the body in bytes.'),
    current_size_gb: count('`volume_size_must_increase`: current size.'),
    requested_size_gb: count('`volume_size_must_increase`: requested size.'),
    min_gb: count('`volume_size_out_of_range`: minimum size.'),
    max_gb: count('`volume_size_out_of_range`: maximum size.'),
    max_instances: count('`scale_out_of_range`: maximum number of instances.'),
    engine: text('`engine_feature_unsupported`: name of the engine.'),
    feature: text('`engine_feature_unsupported`: name of the feature.'),
    available_versions: stringsSchema('`engine_version_unsupported`: possible versions.'),
    earliest: moment('`point_in_time_unavailable`: earliest possible point in time.'),
    latest: moment('`point_in_time_unavailable`: latest possible point in time.'),
    record_errors: recordErrors(),
    line: count('`zone_file_invalid`: number of the line that cannot be parsed.'),
  };
}

function recordErrors(): Schema {
  return {
    type: 'array',
    description: '`record_invalid`: every error of the records in the body.',
    items: {
      type: 'object',
      properties: {
        index: count('Position in the list; absent for a single record.'),
        field: text('Dotted path of the field.'),
        code: text('As in `errors`.'),
        detail: text('What is wrong.'),
      },
      required: ['field', 'code', 'detail'],
    },
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
        ? describeError(codes[0] as ErrorCode)
        : codes.map((code) => `* \`${code}\`: ${errors[code].title}`).join('\n'),
    headers: commonHeaders(builder, status),
    content: { 'application/problem+json': { schema, examples: problemExamples(builder, codes) } },
  };
}

function describeError(code: ErrorCode): string {
  return `${errors[code].meaning} ${errors[code].remedy}`;
}

function problemRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'Problem', () => ({
    type: 'object',
    description: 'A problem document (RFC 9457). `code` is stable and determines which additional members are present.',
    properties: {
      type: { type: 'string', format: 'uri', description: 'URL that describes the code.' },
      title: text('Title of the error.'),
      status: count('HTTP status.'),
      detail: text('Explanation of this occurrence of the error.'),
      instance: text('Path of the request.'),
      code: text('Stable error code. /v2/errors lists all codes.'),
      request_id: {
        type: 'string',
        pattern: REQUEST_ID,
        description: 'Id of the request, as in the header X-Request-Id. Include it when you contact the operator.',
      },
      retryable: { type: 'boolean', description: 'Whether the same request may succeed later without a change.' },
      ...extraMembers(builder),
    },
    required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'request_id', 'retryable'],
  }));
}

function fieldErrorRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'FieldError', () => ({
    type: 'object',
    description: 'An error in a body.',
    properties: {
      field: {
        type: 'string',
        description: 'Dotted path of the field, or empty for the body itself.',
        examples: ['source.branch'],
      },
      code: fieldErrorCodeRef(builder),
      detail: text('Explanation of the error.'),
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
    description: 'A resource that depends on the resource.',
    properties: {
      type: text('Kind of the resource, in lower case.'),
      id: text('Id of the resource.'),
      name: { type: ['string', 'null'], description: 'Name of the resource, or null if it has none.' },
    },
    required: ['type', 'id'],
  }));
}

function countRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'ProblemResourceCount', () => ({
    type: 'object',
    description: 'Number of resources of one kind.',
    properties: {
      resource: text('Kind of resource, as in the usage of a project.'),
      count: count('Number of resources.'),
    },
    required: ['resource', 'count'],
  }));
}

const pascal = (code: string): string =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
