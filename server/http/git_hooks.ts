// Webhooks of Git providers, beside /v2: POST /hooks/git/{token}. The answer comes at once; a storm of the same
// delivery becomes one look at the start and one at its end.
import type { Request, RequestHandler } from 'express';
import { problem } from '../../core/errors';
import { isSigned, readEvent, type HookEvent } from '../../drivers/git_provider/webhook';
import {
  applyChecks,
  applyPullRequest,
  applyPush,
  findHook,
  type HookTarget,
} from '../../models/integrations/git_integration/deliveries';
import type { Platform } from '../platform/platform';
import { readRawBody, refuseRequest } from './raw_request';

/** The path itself is a secret. */
const SHOWN_PATH = '/hooks/git';
const BODY_BYTES_MAX = 25 * 2 ** 20;
/** Deliveries that say the same within this time are one. */
const QUIET_MS = 250;
const WAITING_MAX = 10_000;

export function gitHooks(platform: Platform): RequestHandler {
  const waiting = new Map<string, 'open' | 'again'>();
  return async (request, response) => {
    try {
      const event = await receive(platform, request, waiting);
      response.status(202).json({ event });
    } catch (error) {
      refuseRequest(platform, response, SHOWN_PATH, error);
    }
  };
}

/** @throws not_found, payload_too_large, malformed_json, token_invalid for a wrong signature */
async function receive(platform: Platform, request: Request, waiting: Map<string, 'open' | 'again'>): Promise<string> {
  const { database, secrets } = platform;
  const token = String(request.params.token);
  const target = /^[\w-]{32}$/.test(token) ? await findHook(database, secrets, token) : null;
  if (!target) throw problem('not_found', 'There is no webhook at this address.');
  const body = await readRawBody(request, BODY_BYTES_MAX);
  if (target.provider !== null && target.secret !== null) {
    if (!isSigned(target.provider, request.headers, body, target.secret))
      throw problem('token_invalid', 'The signature of the delivery is missing or wrong.');
  }
  // A shared repository may be called by anything that can make a request: an empty one means a push.
  const isBare = target.provider === null && !hasEventHeader(request);
  const event: HookEvent = isBare ? { kind: 'push', branch: null } : readEvent(request.headers, parse(body));
  await coalesce(platform, target, event, waiting);
  return event.kind;
}

function hasEventHeader({ headers }: Request): boolean {
  return ['x-github-event', 'x-gitea-event', 'x-forgejo-event', 'x-gitlab-event', 'x-event-key'].some(
    (name) => headers[name] !== undefined,
  );
}

async function coalesce(
  platform: Platform,
  target: HookTarget,
  event: HookEvent,
  waiting: Map<string, 'open' | 'again'>,
): Promise<void> {
  if (event.kind === 'other') return;
  const key = `${target.id} ${JSON.stringify(event)}`;
  if (waiting.has(key)) return void waiting.set(key, 'again');
  if (waiting.size < WAITING_MAX) {
    waiting.set(key, 'open');
    const timer = setTimeout(() => {
      const isAgain = waiting.get(key) === 'again';
      waiting.delete(key);
      if (!isAgain) return;
      apply(platform, target, event).catch((error: unknown) => platform.log.warn({ err: error }, 'a webhook was lost'));
    }, QUIET_MS);
    timer.unref();
  }
  await apply(platform, target, event);
}

async function apply({ database }: Platform, target: HookTarget, event: HookEvent): Promise<void> {
  if (event.kind === 'push') await applyPush(database, target, event.branch);
  if (event.kind === 'checks') await applyChecks(database, target);
  if (event.kind === 'pull_request') await applyPullRequest(database, target, event.number);
}

/** JSON, or the form around it that GitHub sends on request. @throws malformed_json */
function parse(body: Buffer): unknown {
  const text = body.toString('utf8');
  try {
    return JSON.parse(text.startsWith('payload=') ? (new URLSearchParams(text).get('payload') ?? '') : text || '{}');
  } catch {
    throw problem('malformed_json');
  }
}
