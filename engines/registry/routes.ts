// Paths of the OCI Distribution API (distribution-spec, "Pulling manifests").
import type { RegistryAction, RepositoryName } from '../../core/protocols/registry_content';
import { RegistryError } from './errors';

export type Route =
  | { kind: 'base' }
  | { kind: 'catalog' }
  | { kind: 'token' }
  | { kind: 'tags'; name: string }
  | { kind: 'manifest' | 'blob' | 'referrers'; name: string; reference: string }
  | { kind: 'uploads'; name: string }
  | { kind: 'upload'; name: string; reference: string };

const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const NAME = new RegExp(`^${COMPONENT}(?:/${COMPONENT})+$`);
const NAME_LENGTH_MAX = 255;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/;

/** null: not a path of the API. */
export function parseRoute(path: string): Route | null {
  if (path === '/v2' || path === '/v2/') return { kind: 'base' };
  if (path === '/v2/_catalog') return { kind: 'catalog' };
  if (path === '/token') return { kind: 'token' };
  const [, name = '', rest = ''] =
    /^\/v2\/(.+?)\/((?:tags\/list|manifests\/[^/]+|referrers\/[^/]+|blobs\/uploads\/?[^/]*|blobs\/[^/]+))$/.exec(
      path,
    ) ?? [];
  if (!name) return null;
  if (rest === 'tags/list') return { kind: 'tags', name };
  const reference = decoded(rest.slice(rest.lastIndexOf('/') + 1));
  if (rest.startsWith('manifests/')) return { kind: 'manifest', name, reference };
  if (rest.startsWith('referrers/')) return { kind: 'referrers', name, reference };
  if (rest === 'blobs/uploads' || rest === 'blobs/uploads/') return { kind: 'uploads', name };
  if (rest.startsWith('blobs/uploads/')) return { kind: 'upload', name, reference };
  return { kind: 'blob', name, reference };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @throws NAME_INVALID for an invalid name, or one without a registry */
export function parseRepositoryName(name: string): RepositoryName {
  if (name.length > NAME_LENGTH_MAX || !NAME.test(name)) {
    throw new RegistryError(
      'NAME_INVALID',
      'The name must be `<registry>/<repository>` in lower case, with at most 255 characters.',
    );
  }
  const slash = name.indexOf('/');
  return { registry: name.slice(0, slash), repository: name.slice(slash + 1) };
}

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

/** @throws DIGEST_INVALID */
export function requireDigest(text: string | null): string {
  if (text !== null && DIGEST.test(text)) return text;
  throw new RegistryError('DIGEST_INVALID', 'The digest must be sha256 or sha512 and its value in hexadecimal.');
}

export function isTag(text: string): boolean {
  return TAG.test(text);
}

/** Action that a request must be authorised for; null: any valid token suffices. */
export function actionOf(route: Route, method: string): RegistryAction {
  if (method === 'GET' || method === 'HEAD') return route.kind === 'upload' ? 'push' : 'pull';
  return method === 'DELETE' && route.kind !== 'upload' ? 'delete' : 'push';
}
