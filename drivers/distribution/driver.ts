// A Distribution server (Debian's docker-registry) as container registry, on disk or on S3, on any number of machines.
// Clients connect to it; it accepts tokens signed by the platform, and sends notifications to the platform. On
// REGISTRY_PORT the platform serves the token endpoint and receives the notifications.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sha256 } from '../../core/accounts/tokens';
import type { RegistryAction, RegistryContent, RegistryTokens } from '../../core/protocols/registry_content';
import { driverContext, type DriverContext } from '../../core/driver';
import {
  type RegistryDriver,
  type RegistryMirror,
  RegistryError,
  respondWithError,
  readBody,
  respond,
  openRegistryServer,
  type RegistryServerOptions,
  issueToken,
} from '../../engines/registry';
import { openDistributionApi, type DistributionApi } from './api';
import { parseEvents, type RegistryEvent } from './events';
import { applyEvent, compareRegistry } from './mirror';

interface DistributionOptions extends RegistryServerOptions {
  /** URL of the server for the platform. */
  distributionUrl: string;
  /** Bearer token of notifications; null: notifications are rejected. */
  eventsKey: string | null;
  content: RegistryContent;
  tokens: RegistryTokens;
  log(message: string, error: unknown): void;
}

const EVENTS_BYTES_MAX = 8 * 1024 * 1024;
const EVENTS_MS = 20_000;

/** @throws Error with the code EADDRINUSE where the port is taken */
export async function openDistribution(options: DistributionOptions): Promise<RegistryDriver> {
  const { distributionUrl: url, content, tokens } = options;
  const api = openDistributionApi(url, (access) => tokens.issueOwn([access]));
  const server = await openRegistryServer(options, (request, response) => void serve(options, api, request, response));
  const access = (name: string, actions: readonly RegistryAction[]): string =>
    tokens.issueOwn([{ type: 'repository', name, actions }]);
  return {
    name: 'distribution',
    port: server.port,
    pullAccess: (name) => Promise.resolve({ url, token: access(name, ['pull']) }),
    pushAccess: (name) => Promise.resolve({ url, token: access(name, ['pull', 'push']) }),
    ownAccess: (rights) => ({ url, token: tokens.issueOwn(rights) }),
    pullLogin: (repository, seconds) => tokens.issuePullLogin(repository, seconds),
    loginFor: (registries) => tokens.issueLogin(registries),
    isPlain: url.startsWith('http:'),
    // Layer files are removed by the operator's garbage collection.
    removeUnused: () => Promise.resolve(),
    removeOldUploads: () => Promise.resolve(),
    async *listBlobs() {
      yield* [];
    },
    mirror: mirrorOf(api, content, tokens),
    close: () => server.close(),
  };
}

function mirrorOf(api: DistributionApi, content: RegistryContent, tokens: RegistryTokens): RegistryMirror {
  return {
    tokenSeconds: tokens.lifetimeSeconds,
    compare: (registry, ctx) => compareRegistry({ api, content }, registry, ctx),
    async remove(name, { manifests, blobs }, ctx) {
      for (const digest of manifests) await api.removeManifest(name, digest, ctx);
      for (const digest of blobs) await api.removeBlob(name, digest, ctx);
    },
    removeAll: (registry, ctx) => removeAll(api, registry, ctx),
  };
}

/** Includes pushes without a row, whose notification was lost. */
async function removeAll(api: DistributionApi, registry: string, ctx: DriverContext): Promise<void> {
  for await (const name of api.repositories(registry, ctx)) {
    for (const tag of await api.tags(name, ctx)) {
      const digest = await api.digest(name, tag, ctx);
      if (digest !== null) await api.removeManifest(name, digest, ctx);
    }
  }
}

async function serve(
  options: DistributionOptions,
  api: DistributionApi,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  try {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://registry');
    if (pathname === '/token') return await issueToken(request, response, searchParams, options.tokens);
    if (pathname !== '/events' || request.method !== 'POST')
      throw new RegistryError('UNSUPPORTED', 'Only tokens are issued here.', { status: 404 });
    await takeEvents(options, api, request);
    respond(response, 200);
  } catch (error) {
    if (request.destroyed && !request.complete) return void response.destroy();
    if (!(error instanceof RegistryError)) options.log('a request for the container registry failed', error);
    const shown = error instanceof RegistryError ? error : new RegistryError('UNKNOWN', 'The platform has failed.');
    if (!request.complete) response.setHeader('Connection', 'close');
    respondWithError(response, shown);
  }
}

/** The server repeats notifications that get an error response. */
async function takeEvents(
  { eventsKey, content, tokens, log }: DistributionOptions,
  api: DistributionApi,
  request: IncomingMessage,
): Promise<void> {
  if (!isKey(request.headers.authorization, eventsKey))
    throw new RegistryError('UNAUTHORIZED', 'Notifications need the key of DISTRIBUTION_EVENTS_KEY.');
  const events = parseEvents(await readBody(request, EVENTS_BYTES_MAX));
  const ctx = driverContext(EVENTS_MS);
  for (const event of events) {
    tokens.recordUse(event.actor);
    await applyEvent({ api, content }, event, ctx).catch((error: unknown) => passOver(event, error, log));
  }
}

/** Accepts a notification that can never be applied, so that it is not repeated forever. */
function passOver({ name, digest }: RegistryEvent, error: unknown, log: DistributionOptions['log']): void {
  if (!(error instanceof RegistryError)) throw error;
  log(`a notification of the container registry cannot be used: ${name}@${digest}`, error);
}

function isKey(header: string | undefined, key: string | null): boolean {
  const [, given = ''] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
  return key !== null && timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(key)));
}
