// Authentication and validation of a request to /graphql before its query is run.
import type { IncomingMessage } from 'node:http';
import type { GraphQLRequest } from '@apollo/server';
import type { Identity } from '../../core/context';
import { problem } from '../../core/errors';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { authenticate } from '../platform/authenticate';
import type { Platform } from '../platform/platform';

/** A request of the shape that Apollo takes. */
export type GraphqlRequest = GraphQLRequest & { query: string };

/** Who is calling, before anything of the body is read; null for a stranger. */
export async function identify(
  platform: Platform,
  request: IncomingMessage,
  address: string,
): Promise<Identity | null> {
  const { authorization, cookie } = request.headers;
  if (authorization !== undefined) return authenticate(platform, authorization, address);
  const secret = readSessionCookie(platform.config, cookie);
  if (!secret) return null;
  requireSameOrigin(request, platform.config.baseUrl);
  return platform.identities.ofSession(secret);
}

/** Browsers send Origin with every POST; a page of another site can't leave it out. @throws csrf_rejected */
export function requireSameOrigin(request: IncomingMessage, baseUrl: string): void {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined || site !== undefined) requireOwnPage(request, baseUrl);
}

/**
 * A GET carries the cookie of a session also where a page of another site makes it, without asking first. Only a
 * browser that says that the page is ours is let in; other programs have keys. @throws csrf_rejected
 */
export function requireOwnPage({ headers }: IncomingMessage, baseUrl: string): void {
  const { origin, host } = headers;
  // Browsers leave Origin out of a GET of the page's own origin.
  if (origin === undefined && headers['sec-fetch-site'] === 'same-origin') return;
  if (origin === new URL(baseUrl).origin || origin === `http://${host}` || origin === `https://${host}`) return;
  throw problem('csrf_rejected');
}

/** Whether a GET of /graphql opens the explorer: browsers navigate with HTML in Accept, and clients name JSON. */
export function opensExplorer({ headers: { accept = '' } }: IncomingMessage): boolean {
  return /\btext\/html\b/i.test(accept) && !/\bjson\b/i.test(accept);
}

// A form, or text, is what a page of another site can send without asking first.
export function requireJson({ headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!/^application\/json\s*(?:;|$)/i.test(type) || encoding !== 'identity') throw problem('unsupported_media_type');
}

/**
 * GraphQL over SSE has a mode in which one connection carries the results of many requests. It is not offered: a client
 * in that mode would wait for results that never come. @throws graphql_invalid
 */
export function requireDistinctConnection({ headers, url }: IncomingMessage): void {
  const token = new URLSearchParams(url?.split('?')[1]).get('token');
  if (headers['x-graphql-event-stream-token'] === undefined && token === null) return;
  throw problem(
    'graphql_invalid',
    'The single connection mode of GraphQL over SSE is not offered. Send each subscription in a request of its own.',
  );
}

/** The parameters of a URL, as GraphQL over HTTP has them, in the shape of a body. @throws graphql_invalid */
export function readUrl(url = ''): Record<string, unknown> {
  const parameters = new URLSearchParams(url.split('?')[1]);
  const read = (name: string): string | undefined => {
    const [value, ...others] = parameters.getAll(name);
    if (others.length) throw problem('graphql_invalid', `The URL has the parameter ${name} more than once.`);
    return value || undefined;
  };
  const json = (name: string): unknown => {
    const text = read(name);
    try {
      return text === undefined ? undefined : (JSON.parse(text) as unknown);
    } catch {
      throw problem('graphql_invalid', `The parameter ${name} of the URL must be a JSON object.`);
    }
  };
  const query = read('query');
  if (query === undefined)
    throw problem('graphql_invalid', 'The URL must have a parameter query. Mutations and bodies are sent with POST.');
  return { query, operationName: read('operationName'), variables: json('variables'), extensions: json('extensions') };
}

/** The members of a body in the shape that Apollo takes. @throws graphql_invalid */
export function readRequest({ query, variables, operationName, extensions }: Record<string, unknown>): GraphqlRequest {
  if (typeof query !== 'string' || query.trim() === '')
    throw problem('graphql_invalid', 'The body must be a JSON object with a query.');
  if (operationName != null && typeof operationName !== 'string')
    throw problem('graphql_invalid', 'operationName must be a string.');
  if (!isObject(variables)) throw problem('graphql_invalid', 'variables must be a JSON object.');
  if (!isObject(extensions)) throw problem('graphql_invalid', 'extensions must be a JSON object.');
  return {
    query,
    variables: variables ?? undefined,
    operationName: operationName || undefined,
    extensions: extensions ?? undefined,
  };
}

const isObject = (value: unknown): value is Record<string, unknown> | null | undefined =>
  value == null || (typeof value === 'object' && !Array.isArray(value));
