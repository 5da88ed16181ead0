// Conditional requests (RFC 9110 section 13) and content negotiation (section 12.5.1).
import { createHash } from 'node:crypto';
import Negotiator from 'negotiator';
import { problem } from '../core/errors';
import type { Operation } from '../contract/operations';

const JSON_TYPE = 'application/json';

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

/**
 * JSON, or the other type that the answer can be said to have, whichever the client prefers. @throws not_acceptable
 * where it takes neither
 */
export function acceptable(accept: string | undefined, other = JSON_TYPE): string {
  if (!accept || accept === '*/*' || accept === JSON_TYPE) return JSON_TYPE;
  // Both types are without parameters (RFC 8259 section 11), and clients that ask for a charset mean them all the same.
  const types = accept.replace(/;(?!\s*q=)[^,;]*/gi, '');
  const preferred = new Negotiator({ headers: { accept: types } }).mediaType([JSON_TYPE, other]);
  if (!preferred) throw problem('not_acceptable');
  return preferred;
}
