// Errors that a client can see. Thrown with problem(), rendered once.
import { errors, type ErrorEntry } from './error_table';

export { errors, type ErrorEntry };

export type ErrorCode = keyof typeof errors;

/** What can be wrong with one field (entries of validation_failed). */
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

/** Extra members of a problem document. The names that RFC 9457 and the platform use themselves are not free. */
export type Members = Record<string, unknown> & { [name in StandardMember]?: never };

/** An error for the client. Made by problem(); the message equals the detail. */
export class Problem extends Error {
  readonly status: number;

  /** Whether the same request can succeed later: that of the code, unless the cause says more. */
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
 * A problem, to be thrown.
 * @param detail default: the meaning of the code
 * @param members shown in the document and in GraphQL extensions, as the description of the code names them
 * @param headers sent with the answer, e.g. Retry-After (seconds) or Allow
 */
export function problem(
  code: ErrorCode,
  detail?: string,
  members: Members = {},
  headers: Record<string, string> = {},
): Problem {
  // The client gets no stack, and capturing one is most of the cost of a refusal. Errors of our own keep theirs.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new Problem(code, detail ?? errors[code].meaning, members, headers);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The 422 that reports all mistakes of a body together. */
export function validationFailed(fields: FieldError[]): Problem {
  return problem('validation_failed', undefined, { errors: fields });
}

/** The 400 for one query parameter. */
export function invalidQuery(parameter: string, detail: string): Problem {
  return problem('invalid_query_parameter', detail, { parameter });
}

/**
 * The problem as an RFC 9457 document. `type` resolves: GET /v2/errors/{code}.
 * @param about base_url without a slash at its end; instance is the path of the request
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
  // Twice: first for the order of the members, last so that no extra member replaces a standard one.
  return { ...standard, ...p.members, ...standard };
}
