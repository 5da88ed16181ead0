// The embedded container registry: the OCI Distribution API 1.1, backed by rows of the control plane and files.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { visitorOf } from '../../core/process/ingress_connections';
import type {
  RegistryAction,
  RegistryContent,
  RegistryTokens,
  RepositoryName,
  ServedRegistry,
} from '../../core/protocols/registry_content';
import type { RegistryDriver } from './registry';
import { openBlobFiles } from './blob_files';
import * as blobHandlers from './blob_handlers';
import { RegistryError, respondWithError } from './errors';
import { respondWithJson, type Exchange, type Handler } from './exchange';
import * as manifestHandlers from './manifest_handlers';
import { actionOf, parseRepositoryName, parseRoute, type Route } from './routes';
import { openRegistryServer, type RegistryServerOptions } from './server';
import { issueToken } from './token_handler';
import { openUploadFiles } from './uploads';

interface EmbeddedRegistryOptions extends RegistryServerOptions {
  directory: string;
  /** `https://registry.example.com`, without a trailing slash: base URL of the token endpoint. */
  url: string;
  /** For nodes of a cluster, which the public address does not reach; null: they use it too. */
  nodesUrl: string | null;
  sizeMax: number;
  content: RegistryContent;
  tokens: RegistryTokens;
  log(message: string, error: unknown): void;
}

type Parts = Pick<Exchange, 'content' | 'blobs' | 'uploads' | 'sizeMax'> &
  Pick<EmbeddedRegistryOptions, 'tokens' | 'url' | 'nodesUrl' | 'log'>;

const OLD_UPLOAD_MS = 24 * 3_600_000;
const HANDLERS: Partial<Record<Route['kind'], Partial<Record<string, Handler>>>> = {
  tags: { GET: manifestHandlers.listTags },
  referrers: { GET: manifestHandlers.listReferrers },
  manifest: {
    GET: manifestHandlers.getManifest,
    HEAD: manifestHandlers.getManifest,
    PUT: manifestHandlers.putManifest,
    DELETE: manifestHandlers.deleteManifest,
  },
  blob: { GET: blobHandlers.getBlob, HEAD: blobHandlers.getBlob, DELETE: blobHandlers.deleteBlob },
  uploads: { POST: blobHandlers.startUpload },
  upload: {
    GET: blobHandlers.getUpload,
    PATCH: blobHandlers.appendChunk,
    PUT: blobHandlers.finishUpload,
    DELETE: blobHandlers.cancelUpload,
  },
};

/** @throws Error with the code EADDRINUSE where the port is taken */
export async function openEmbeddedRegistry(options: EmbeddedRegistryOptions): Promise<RegistryDriver> {
  const blobs = openBlobFiles(join(options.directory, 'blobs'));
  const uploads = openUploadFiles(join(options.directory, 'uploads'));
  const { content, tokens, url, nodesUrl, log, sizeMax } = options;
  const parts: Parts = { content, blobs, uploads, sizeMax, tokens, url, nodesUrl, log };
  const server = await openRegistryServer(options, (request, response) => void serve(parts, request, response));
  const access = (name: string, actions: readonly RegistryAction[]): { url: string; token: string } => ({
    url: localUrl(options, server.port),
    token: tokens.issueOwn([{ type: 'repository', name, actions }]),
  });
  return {
    name: 'embedded',
    port: server.port,
    pullAccess: (name) => Promise.resolve(access(name, ['pull'])),
    pushAccess: (name) => Promise.resolve(access(name, ['pull', 'push'])),
    ownAccess: (rights) => ({ url: localUrl(options, server.port), token: tokens.issueOwn(rights) }),
    pullLogin: (repository, seconds) => tokens.issuePullLogin(repository, seconds),
    loginFor: (registries) => tokens.issueLogin(registries),
    isPlain: url.startsWith('http:'),
    async removeUnused(digests) {
      for (const digest of digests) await content.ifUnused(digest, () => blobs.remove(digest));
    },
    removeOldUploads: () => uploads.removeOld(OLD_UPLOAD_MS),
    listBlobs: () => blobs.list(),
    mirror: null,
    close: () => server.close(),
  };
}

/** URL of the server for programs on this host. */
function localUrl({ certificate, listen: host }: EmbeddedRegistryOptions, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${certificate ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

async function serve(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('Docker-Distribution-API-Version', 'registry/2.0');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  try {
    await dispatch(parts, request, response);
  } catch (error) {
    // The client has disconnected during the request or the response.
    if (response.destroyed || (request.destroyed && !request.complete)) return void response.destroy();
    if (!(error instanceof RegistryError)) parts.log('a request to the container registry failed', error);
    const shown = error instanceof RegistryError ? error : new RegistryError('UNKNOWN', 'The registry has failed.');
    // Unread body bytes would be parsed as the next request.
    if (!request.complete) response.setHeader('Connection', 'close');
    respondWithError(response, shown);
  }
}

async function dispatch(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://registry');
  const route = parseRoute(pathname);
  if (!route) throw new RegistryError('UNSUPPORTED', 'The registry has no such path.', { status: 404 });
  if (route.kind === 'token') {
    const address = visitorOf(request)?.address ?? request.socket.remoteAddress ?? '';
    return issueToken(request, response, { query, address }, parts.tokens);
  }
  const method = request.method ?? '';
  if (route.kind === 'base') {
    await authorise(parts, request, null, route);
    return respondWithJson(response, {});
  }
  if (route.kind === 'catalog')
    throw new RegistryError('DENIED', 'Repositories of all registries are not listed. Use the API of the platform.');
  const handler = HANDLERS[route.kind]?.[method];
  if (!handler) throw new RegistryError('UNSUPPORTED', `${method.slice(0, 10)} is not supported here.`);
  const name = parseRepositoryName(route.name);
  const subject = await authorise(parts, request, name, route);
  const registry = await findRegistry(parts, name);
  const { content, blobs, uploads } = parts;
  const sizeMax = registry.is_own ? Number.MAX_SAFE_INTEGER : parts.sizeMax;
  const { repository } = name;
  const exchange = {
    request,
    response,
    query,
    content,
    blobs,
    uploads,
    sizeMax,
    registry,
    name: route.name,
    repository,
    subject,
  };
  await handler(exchange, 'reference' in route ? route.reference : '');
}

async function findRegistry({ content }: Parts, { registry }: RepositoryName): Promise<ServedRegistry> {
  const found = await content.find(registry);
  if (!found) throw new RegistryError('NAME_UNKNOWN', 'There is no such registry.');
  return found;
}

/** @returns id of the account. @throws UNAUTHORIZED, DENIED */
async function authorise(
  { tokens, url, nodesUrl }: Parts,
  request: IncomingMessage,
  name: RepositoryName | null,
  route: Route,
): Promise<string> {
  const [, token = null] = /^bearer +(\S+) *$/i.exec(request.headers.authorization ?? '') ?? [];
  const action = actionOf(route, request.method ?? '');
  const verdict = await tokens.verify(token, name, action);
  if (verdict.state === 'allowed') return verdict.subject;
  if (verdict.state === 'denied')
    throw new RegistryError('DENIED', `The account may not ${action} here, or there is no such registry.`);
  const actions = action === 'push' ? 'pull,push' : action;
  const scope = name && `,scope="repository:${name.registry}/${name.repository}:${actions}"`;
  const insufficient = verdict.isKnown ? ',error="insufficient_scope"' : '';
  const isNode = nodesUrl !== null && request.headers.host === new URL(nodesUrl).host;
  const challenge = `Bearer realm="${isNode ? nodesUrl : url}/token",service="${new URL(url).host}"`;
  throw new RegistryError('UNAUTHORIZED', 'A token of the registry is needed.', {
    headers: { 'WWW-Authenticate': `${challenge}${scope ?? ''}${insufficient}` },
  });
}
