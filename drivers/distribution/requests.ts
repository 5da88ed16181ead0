// The token endpoint and the notifications of a Distribution server. Any number of processes serve them: tokens are
// signed by the same key, and a notification makes the one that gets it ask the server.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sha256 } from '../../core/accounts/tokens';
import { driverContext } from '../../core/driver';
import type { RegistryContent, RegistryTokens } from '../../core/protocols/registry_content';
import { issueToken, readBody, RegistryError, respond, respondWithError } from '../../engines/registry';
import { openDistributionApi, type DistributionApi } from './api';
import { parseEvents, type RegistryEvent } from './events';
import { applyEvent } from './mirror';

export interface DistributionRequestsOptions {
  /** URL of the server for the platform. */
  distributionUrl: string;
  /** Bearer token of notifications; null: notifications are rejected. */
  eventsKey: string | null;
  content: RegistryContent;
  tokens: RegistryTokens;
  log(message: string, error: unknown): void;
}

/** @param to `/token` or `/events`, and the address of the client, which failed logins count for */
export type DistributionRequests = (
  request: IncomingMessage,
  response: ServerResponse,
  to: { path: string; address: string },
) => Promise<void>;

const EVENTS_BYTES_MAX = 8 * 1024 * 1024;
const EVENTS_MS = 20_000;

/** Answers every request itself, with an error of the registry protocol where it must. */
export function openDistributionRequests(options: DistributionRequestsOptions): DistributionRequests {
  const { tokens } = options;
  const api = openDistributionApi(options.distributionUrl, (access) => tokens.issueOwn([access]));
  return async (request, response, { path, address }) => {
    response.setHeader('X-Content-Type-Options', 'nosniff');
    try {
      const { searchParams } = new URL(request.url ?? '/', 'http://registry');
      if (path === '/token') return await issueToken(request, response, { query: searchParams, address }, tokens);
      if (path !== '/events' || request.method !== 'POST')
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
  };
}

/** The server repeats notifications that get an error response. */
async function takeEvents(
  { eventsKey, content, tokens, log }: DistributionRequestsOptions,
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
function passOver({ name, digest }: RegistryEvent, error: unknown, log: DistributionRequestsOptions['log']): void {
  if (!(error instanceof RegistryError)) throw error;
  log(`a notification of the container registry cannot be used: ${name}@${digest}`, error);
}

function isKey(header: string | undefined, key: string | null): boolean {
  const [, given = ''] = /^bearer +(\S+) *$/i.exec(header ?? '') ?? [];
  return key !== null && timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(key)));
}
