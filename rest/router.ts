// Finds the operation of a method and path in constant time, and distinguishes 404 from 405.
import findMyWay, { type HTTPMethod } from 'find-my-way';
import { problem } from '../core/errors';
import { limits } from '../core/limits';
import type { Method, Operation } from '../contract/operations';

export interface Match {
  operation: Operation;
  params: Record<string, string>;
}

export interface Router {
  /** @throws route_not_found, method_not_allowed (with Allow), malformed_request for bad percent-encoding */
  match(method: string, path: string): Match;
  /** Methods of a path, HEAD and OPTIONS included; empty where there is no such path. */
  allowed(path: string): string[];
}

const METHODS: Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function buildRouter(operations: Operation[]): Router {
  // A name in the path may be long (variable keys); the length is the operation's business, not the router's.
  const router = findMyWay({ maxParamLength: limits.headerBytesMax, caseSensitive: true, ignoreTrailingSlash: false });
  for (const operation of operations) {
    router.on(operation.method, operation.path.replace(/\{(\w+)\}/g, ':$1'), () => {}, operation);
  }
  const fixed = new Set(operations.filter(({ params }) => !params.length).map(({ path }) => path));
  const find = (method: string, path: string): Match | null => {
    // find-my-way would match an empty text as a parameter: /v2/volumes/ as a volume.
    if (path.endsWith('/') || path.includes('//')) return null;
    const found = router.find(method as HTTPMethod, path);
    if (!found) return null;
    const operation = found.store as Operation;
    // A literal path is not an id: PATCH /v2/databases/engines is 405, not an update of a database.
    if (operation.params.length && fixed.has(path)) return null;
    return { operation, params: found.params as Record<string, string> };
  };
  const allowed = (path: string): string[] => {
    const methods: string[] = METHODS.filter((method) => find(method, path));
    if (methods.includes('GET')) methods.push('HEAD');
    return methods.length ? [...methods, 'OPTIONS'] : [];
  };
  return {
    allowed,
    match: (method, path) => find(method === 'HEAD' ? 'GET' : method, path) ?? throwUnmatched(path, allowed(path)),
  };
}

function throwUnmatched(path: string, allowed: string[]): never {
  if (!allowed.length) throw problem('route_not_found', `No operation has the path ${path.slice(0, 200)}.`);
  throw problem('method_not_allowed', undefined, {}, { Allow: allowed.join(', ') });
}
