// Conditional reads and writes (RFC 9110 §13), in the order of §13.2.2.
import type { StoredObject } from '../../core/protocols/objects';
import { S3Error } from './errors';
import { headerOf, type S3Request } from './request';

/** @throws S3Error PreconditionFailed, NotModified */
export function requireConditions(request: S3Request, object: StoredObject): void {
  const modified = Math.floor(Date.parse(object.modified_at) / 1000) * 1000;
  const [match, none] = [headerOf(request, 'if-match'), headerOf(request, 'if-none-match')];
  const [since, unmodified] = [dateOf(request, 'if-modified-since'), dateOf(request, 'if-unmodified-since')];
  if (match !== undefined ? !names(match, object.etag) : unmodified !== null && modified > unmodified)
    throw new S3Error('PreconditionFailed');
  if (none !== undefined ? names(none, object.etag) : since !== null && modified <= since)
    throw new S3Error('NotModified', undefined, { etag: `"${object.etag}"` });
}

/** The same for x-amz-copy-source-if-…, where every failure is PreconditionFailed. */
export function requireCopyConditions(request: S3Request, object: StoredObject): void {
  const modified = Math.floor(Date.parse(object.modified_at) / 1000) * 1000;
  const of = (name: string): string => `x-amz-copy-source-${name}`;
  const [match, none] = [headerOf(request, of('if-match')), headerOf(request, of('if-none-match'))];
  const [since, unmodified] = [dateOf(request, of('if-modified-since')), dateOf(request, of('if-unmodified-since'))];
  const failed =
    (match !== undefined ? !names(match, object.etag) : unmodified !== null && modified > unmodified) ||
    (none !== undefined ? names(none, object.etag) : since !== null && modified <= since);
  if (failed) throw new S3Error('PreconditionFailed');
}

/** Conditions of a write, which the database evaluates in the transaction of the write. */
export function writeConditions(request: S3Request): { if_none_match?: boolean; if_match?: string } {
  const [match, none] = [headerOf(request, 'if-match'), headerOf(request, 'if-none-match')];
  if (none !== undefined && none.trim() !== '*')
    throw new S3Error('NotImplemented', 'If-None-Match of a write can only be *.');
  return {
    ...(none !== undefined && { if_none_match: true }),
    ...(match !== undefined && { if_match: match.trim().replace(/^"|"$/g, '') }),
  };
}

function names(list: string, etag: string): boolean {
  return list
    .split(',')
    .some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '').replace(/^"|"$/g, '') === etag);
}

function dateOf(request: S3Request, name: string): number | null {
  const ms = Date.parse(headerOf(request, name) ?? '');
  return Number.isNaN(ms) ? null : ms;
}
