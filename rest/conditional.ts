// Conditional requests (RFC 9110 section 13) and content negotiation (section 12.5.1).
import { createHash } from 'node:crypto';
import Negotiator from 'negotiator';
import { problem } from '../core/errors';
import type { Operation } from '../contract/operations';

const JSON_TYPE = 'application/json';
const EVENT_STREAM = 'text/event-stream';

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
 * The media type of the response that the client prefers: JSON, or `other`, which fits the same content.
 * @throws not_acceptable if the client accepts neither
 */
export function acceptable(accept: string | undefined, other = JSON_TYPE): string {
  if (!accept || accept === '*/*' || accept === JSON_TYPE) return JSON_TYPE;
  const preferred = preferredType(accept, [JSON_TYPE, other]);
  if (!preferred) throw problem('not_acceptable');
  return preferred;
}

/** Whether events are preferred to JSON: by quality, then the one that is named rather than a range, then by order. */
export function prefersEvents(accept: string | undefined): boolean {
  return accept !== undefined && preferredType(accept, [JSON_TYPE, EVENT_STREAM]) === EVENT_STREAM;
}

interface GraphqlTypes {
  /** For queries and mutations; null where the client takes no JSON. */
  json: string | null;
  /** Whether the client takes events at all. */
  events: boolean;
}

/**
 * The types that a client of GraphQL takes. JSON is for queries and mutations, events for subscriptions, however the
 * client orders them: the usual clients send one list for both. @throws not_acceptable where it takes none
 */
export function graphqlTypes(accept: string | undefined): GraphqlTypes {
  if (!accept || accept === '*/*') return { json: JSON_TYPE, events: true };
  const json = preferredType(accept, [JSON_TYPE, 'application/graphql-response+json']);
  const events = preferredType(accept, [EVENT_STREAM]) !== null;
  if (!json && !events) throw problem('not_acceptable');
  return { json, events };
}

function preferredType(accept: string, types: string[]): string | null {
  // The types have no parameters (RFC 8259 section 11), so a charset in Accept is ignored.
  const named = accept.replace(/;(?!\s*q=)[^,;]*/gi, '');
  return new Negotiator({ headers: { accept: named } }).mediaType(types) ?? null;
}
