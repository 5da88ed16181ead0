// The error codes that an operation can answer: the general ones by its nature, its own by @errors.
import { errors, type ErrorCode } from '../../core/errors';
import { isClosedToViewers } from '../../contract/guard';
import type { Operation } from '../../contract/operations';
import { specOf } from '../../contract/spec';
import type { DocumentBuilder } from './builder';

/** Codes by status, in the order of the error table. */
export function codesOf(builder: DocumentBuilder, operation: Operation): Map<number, ErrorCode[]> {
  const found = new Set<ErrorCode>([
    ...requestCodes(builder, operation),
    ...callerCodes(operation),
    ...projectCodes(operation),
    ...writeCodes(operation),
    'headers_too_large',
    'internal_error',
    'service_unavailable',
    ...(operation.field.errors as ErrorCode[]),
  ]);
  const codes = new Map<number, ErrorCode[]>();
  for (const code of Object.keys(errors) as ErrorCode[]) {
    if (!found.delete(code)) continue;
    const { status } = errors[code];
    codes.set(status, [...(codes.get(status) ?? []), code]);
  }
  if (found.size)
    throw new Error(`schema: ${operation.field.name}: unknown error code "${[...found].join('", "')}" in @errors`);
  return codes;
}

/** Whether the project comes from the header. */
export function usesProjectHeader(operation: Operation): boolean {
  const { field, params } = operation;
  if (field.global || field.scope === 'none') return false;
  return !params.some((param) => param.argument === field.projectArgument);
}

function requestCodes(builder: DocumentBuilder, operation: Operation): ErrorCode[] {
  const codes: ErrorCode[] = ['malformed_request', 'not_acceptable'];
  if (operation.query.length) codes.push('invalid_query_parameter');
  if (operation.query.some((argument) => argument.name === 'cursor')) codes.push('invalid_cursor');
  if (operation.params.length) codes.push('not_found');
  if (hasBoundedParam(builder, operation)) codes.push('validation_failed');
  return codes;
}

function hasBoundedParam(builder: DocumentBuilder, { field, params }: Operation): boolean {
  const bound = field.definition.args.filter((argument) => params.some((param) => param.argument === argument.name));
  return bound.some((argument) => Object.keys(specOf(builder.schema, argument)).some((name) => name !== 'example'));
}

function callerCodes({ field }: Operation): ErrorCode[] {
  if (field.scope === 'none') return [];
  const codes: ErrorCode[] = ['token_missing', 'token_invalid', 'token_expired', 'account_suspended', 'rate_limited'];
  if (field.scope !== 'any') codes.push('insufficient_scope', 'key_paused');
  if (field.destroys || field.destroyingInputs.length) codes.push('destroy_not_allowed', 'approval_required');
  if (isClosedToViewers(field)) codes.push('role_not_permitted');
  if (field.access.personalKey) codes.push('personal_key_required');
  if (field.access.unrestricted) codes.push('project_not_allowed');
  return codes;
}

function projectCodes(operation: Operation): ErrorCode[] {
  const { field } = operation;
  if (field.global || field.scope === 'none') return [];
  const codes: ErrorCode[] = ['project_not_allowed', 'project_not_found'];
  return usesProjectHeader(operation) ? [...codes, 'project_header_missing'] : codes;
}

function writeCodes({ method }: Operation): ErrorCode[] {
  if (method === 'GET') return [];
  if (method === 'DELETE') return ['precondition_failed'];
  const codes: ErrorCode[] = [
    'malformed_json',
    'request_timeout',
    'payload_too_large',
    'unsupported_media_type',
    'validation_failed',
  ];
  if (method === 'POST') return [...codes, 'idempotency_in_progress', 'idempotency_key_reused'];
  return [...codes, 'precondition_failed'];
}
