// CORS (Fetch standard, §3.2).
import { wildcardMatches } from '../../../core/protocols/buckets/bucket_policy';
import type { CorsRule } from '../object_storage';
import type { ServedBucket } from '../catalog';
import { S3Error } from '../errors';
import { headerOf, type S3Request } from '../request';

const ANY = '*';

/**
 * CORS response headers. Caches store what they get and give it to others (Fetch standard, CORS protocol and HTTP
 * caches): a rule for all origins answers requests without Origin too, and where rules are for some, Vary says so
 * whether or not one of them matches.
 */
export function corsHeaders(bucket: ServedBucket, request: S3Request): Record<string, string> {
  const rules = bucket.cors.filter(({ allowed_methods }) => allowed_methods.includes(request.method));
  const origin = headerOf(request, 'origin') ?? ANY;
  const rule = rules.find((one) => allows(one, origin, request.method));
  const isForAll = rules[0]?.allowed_origins.includes(ANY) ?? true;
  return {
    ...(rule && originHeaders(rule, origin)),
    ...(rule?.expose_headers.length && { 'access-control-expose-headers': rule.expose_headers.join(', ') }),
    ...(!isForAll && { vary: 'Origin' }),
  };
}

/** @throws S3Error AccessDenied where no rule matches the preflight request */
export function preflightHeaders(bucket: ServedBucket, request: S3Request): Record<string, string> {
  const origin = headerOf(request, 'origin');
  const method = headerOf(request, 'access-control-request-method');
  if (origin === undefined || method === undefined)
    throw new S3Error(
      'InvalidRequest',
      'A preflight request must have the headers Origin and Access-Control-Request-Method.',
    );
  const wanted = (headerOf(request, 'access-control-request-headers') ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean);
  const rule = bucket.cors.find(
    (one) =>
      allows(one, origin, method) &&
      wanted.every((name) => one.allowed_headers.some((allowed) => wildcardMatches(allowed.toLowerCase(), name))),
  );
  if (!rule) throw new S3Error('AccessDenied', 'No CORS rule of the bucket allows this request.');
  return {
    ...originHeaders(rule, origin),
    vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    'access-control-allow-methods': rule.allowed_methods.join(', '),
    ...(wanted.length && { 'access-control-allow-headers': wanted.join(', ') }),
    'access-control-max-age': String(rule.max_age_seconds),
  };
}

function allows({ allowed_origins, allowed_methods }: CorsRule, origin: string, method: string): boolean {
  return allowed_methods.includes(method) && allowed_origins.some((one) => wildcardMatches(one, origin));
}

function originHeaders({ allowed_origins }: CorsRule, origin: string): Record<string, string> {
  if (allowed_origins.includes(ANY)) return { 'access-control-allow-origin': ANY };
  return { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' };
}
