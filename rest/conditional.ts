// Conditional requests (RFC 9110 section 13) and content negotiation (section 12.5.1).
import { createHash } from 'node:crypto';
import { problem } from '../core/errors';
import type { Operation } from '../core/operations';

/** A validator made of the body, for catalogs and other answers that have no version; lists of rows have none. */
export function bodyTag(operation: Operation, body: string): string | null {
  const { field } = operation;
  if (field.kind !== 'query' || (field.list && !field.global)) return null;
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
}

/** Whether an If-None-Match header names the validator (weak comparison). */
export function notModified(header: string | undefined, etag: string | undefined): boolean {
  if (!header || !etag) return false;
  if (header.trim() === '*') return true;
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}

/** @throws not_acceptable unless the client takes JSON, or the other type that the answer can be said to have */
export function requireAcceptable(accept: string | undefined, other?: string): void {
  if (!accept || accept === '*/*' || accept === 'application/json') return;
  const takes = accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    return !refused && (type === '*/*' || type === 'application/*' || type === 'application/json' || type === other);
  });
  if (!takes) throw problem('not_acceptable');
}
