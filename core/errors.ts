// Errors visible to clients. Thrown with problem(), rendered in one place.
import { errors, type ErrorEntry } from './error_table';

export { errors, type ErrorEntry };

export type ErrorCode = keyof typeof errors;

/** Error codes of a single field (entries of validation_failed). */
export type FieldErrorCode =
  | 'required'
  | 'unknown_field'
  | 'immutable'
  | 'invalid_type'
  | 'invalid_format'
  | 'too_short'
  | 'too_long'
  | 'too_small'
  | 'too_large'
  | 'too_few'
  | 'too_many'
  | 'not_in_enum'
  | 'duplicate'
  | 'mutually_exclusive'
  | 'depends_on';

/** `field` is a dotted path, `rules.0.allowed_origins`. */
export interface FieldError {
  field: string;
  code: FieldErrorCode;
  detail: string;
}

type StandardMember = 'type' | 'title' | 'status' | 'detail' | 'instance' | 'code' | 'request_id' | 'retryable';

/** Extension members of a problem document. The names of RFC 9457 and of the platform are reserved. */
type Members = Record<string, unknown> & { [name in StandardMember]?: never };

/** An error for the client. Created by problem(); the message equals the detail. */
export class Problem extends Error {
  readonly status: number;

  /** Whether the same request can succeed later: the value of the code, unless the cause overrides it. */
  retryable: boolean;

  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    readonly members: Record<string, unknown>,
    readonly headers: Record<string, string>,
  ) {
    super(detail);
    this.name = 'Problem';
    this.status = errors[code].status;
    this.retryable = errors[code].retryable;
  }
}

/** RFC 9457 document with the platform's members. */
interface ProblemDocument {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: ErrorCode;
  request_id: string;
  retryable: boolean;
  [member: string]: unknown;
}

/**
 * Creates a problem, to be thrown.
 * @param detail default: the meaning of the code
 * @param members extension members of the document and of GraphQL extensions, as described for the code
 * @param headers response headers, e.g. Retry-After (seconds) or Allow
 */
export function problem(
  code: ErrorCode,
  detail?: string,
  members: Members = {},
  headers: Record<string, string> = {},
): Problem {
  // The client gets no stack trace, and capturing one is most of the cost of an error response. Internal errors keep
  // theirs.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new Problem(code, detail ?? errors[code].meaning, members, headers);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The 422 that reports all errors of a body together. */
export function validationFailed(fields: FieldError[]): Problem {
  return problem('validation_failed', undefined, { errors: fields });
}

/** The 400 for a query parameter. */
export function invalidQuery(parameter: string, detail: string): Problem {
  return problem('invalid_query_parameter', detail, { parameter });
}

/**
 * The problem as an RFC 9457 document. `type` resolves: GET /v2/errors/{code}.
 * @param about base_url without a trailing slash; instance is the path of the request
 */
export function toDocument(
  p: Problem,
  about: { base_url: string; request_id: string; instance: string },
): ProblemDocument {
  const { title, status }: ErrorEntry = errors[p.code];
  const standard = {
    type: `${about.base_url}/v2/errors/${p.code}`,
    title,
    status,
    detail: p.detail,
    instance: about.instance,
    code: p.code,
    request_id: about.request_id,
    retryable: p.retryable,
  };
  // Spread twice: first for the order of the members, last so that extension members cannot replace standard ones.
  return { ...standard, ...p.members, ...standard };
}
