// Errors of providers in a uniform form. Their messages are passed on, shortened and without the token.
import { GitProviderError } from '../../core/protocols/git_provider';
import type { Answered } from '../../core/outbound/exchange';

interface Refusal {
  title: string;
  token: string;
  status: number;
  headers: Answered['headers'];
  json: unknown;
}

const MESSAGE_CHARACTERS = 200;
/** Longer delays requested by a provider are capped. */
const PAUSE_MS_MAX = 3_600_000;
const PAUSE_MS_DEFAULT = 60_000;

export function errorOf(refusal: Refusal, now: number): GitProviderError {
  const { title, status } = refusal;
  const message = providerMessage(refusal);
  if (isRateLimit(refusal, message)) return rateLimited(title, now + pauseOf(refusal, now));
  const quoted = message ? ` ${title} says: ${message}` : '';
  if (status === 401)
    return new GitProviderError('unauthorized', `${title} refused the token. It may be wrong or revoked.${quoted}`);
  if (status === 403) {
    const scopes = neededScopes(refusal, message);
    const missing = scopes ? ` The token lacks the scope ${scopes}.` : ' The token is not allowed to do this.';
    return new GitProviderError('forbidden', `${title} refused the request.${missing}${quoted}`);
  }
  if (status === 404 || status === 410)
    return new GitProviderError('not_found', `${title} has no such resource, or the token may not see it.${quoted}`);
  return new GitProviderError('failed', `${title} answered with the status ${status}.${quoted}`);
}

export function rateLimited(title: string, until: number): GitProviderError {
  const at = new Date(until).toISOString();
  return new GitProviderError('rate_limited', `The rate limit of ${title} is used up until ${at}.`, at);
}

function isRateLimit({ status, headers }: Refusal, message: string): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return headers['x-ratelimit-remaining'] === '0' || 'retry-after' in headers || /rate limit/i.test(message);
}

/** `Retry-After` in seconds, or the end of the window (GitHub: `X-RateLimit-Reset`, GitLab: without X). */
function pauseOf({ headers }: Refusal, now: number): number {
  const after = Number(headers['retry-after']) * 1000;
  const reset = Number(headers['x-ratelimit-reset'] ?? headers['ratelimit-reset']) * 1000 - now;
  const pause = [after, reset].find((ms) => Number.isFinite(ms) && ms > 0) ?? PAUSE_MS_DEFAULT;
  return Math.min(pause, PAUSE_MS_MAX);
}

/** Missing scopes named by the provider; null where it names none. */
function neededScopes({ headers, json }: Refusal, message: string): string | null {
  const { scope, error } = (json ?? {}) as { scope?: unknown; error?: { detail?: { required?: unknown } } };
  const required = error?.detail?.required;
  if (Array.isArray(required) && required.length) return clean(required.join(', '));
  if (typeof scope === 'string' && scope) return clean(scope);
  const listed = /required scope\(s\):? \[([^\]]+)\]/.exec(message)?.[1];
  if (listed) return listed;
  const accepted = headers['x-accepted-github-permissions'] ?? headers['x-accepted-oauth-scopes'];
  return typeof accepted === 'string' && accepted ? clean(accepted) : null;
}

function providerMessage({ json, token }: Refusal): string {
  const { message, error, error_description } = (json ?? {}) as Record<string, unknown>;
  const nested = (error as { message?: unknown } | null | undefined)?.message;
  const found = [error_description, message, nested, error].find((text) => typeof text === 'string' && text !== '');
  const text =
    typeof found === 'string' ? found : typeof message === 'object' && message ? JSON.stringify(message) : '';
  return clean(text.replaceAll(token, '***'));
}

function clean(text: string): string {
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MESSAGE_CHARACTERS);
}
