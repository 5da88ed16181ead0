// Trying again: where the server asks for it, and where the network failed and nothing can be done twice.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, Failure } from '../failure';
import { notice } from '../output/notice';
import { sendRequest, type HttpAnswer, type HttpRequest } from './send';

const ATTEMPTS_MAX = 5;
/** How long a command waits for a server that asks to come back later. */
const PATIENCE_SECONDS = 60;
/** What passes by itself. A refused connection and an unknown name do not. */
const PASSING = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN', 'ECONNABORTED', 'ENETUNREACH']);

/**
 * Sends a request until it has an answer that is not 429 or 503.
 * @param key whether an Idempotency-Key makes it safe to repeat what is not idempotent by its method; `repeatable`:
 * it is safe without one
 * @throws Failure with what the network said
 */
export async function sendWithRetries(
  request: HttpRequest,
  key: 'with_key' | 'without_key' | 'repeatable' = 'without_key',
): Promise<HttpAnswer> {
  const headers = { ...request.headers };
  if (key === 'with_key') headers['Idempotency-Key'] ??= randomUUID();
  const hasKey = headers['Idempotency-Key'] !== undefined;
  const isRepeatable = hasKey || key === 'repeatable' || !['POST', 'PATCH'].includes(request.method);
  const patienceEnds = Date.now() + secondsOfPatience() * 1000;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await sendRequest({ ...request, headers });
      const waitMs = retryAfterMs(answer, attempt);
      if (waitMs === undefined || attempt >= ATTEMPTS_MAX || Date.now() + waitMs > patienceEnds) return answer;
      if (answer.status === 503 && !isRepeatable) return answer;
      notice(`The server asks to wait ${Math.ceil(waitMs / 1000)} s (status ${answer.status}). Trying again then.`);
      await sleep(waitMs);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (!isRepeatable || !PASSING.has(code) || attempt >= ATTEMPTS_MAX) throw networkFailure(request.url, error);
      await sleep(250 * 2 ** attempt);
    }
  }
}

function secondsOfPatience(): number {
  const given = Number(process.env.SVC_RETRY_SECONDS ?? PATIENCE_SECONDS);
  return Number.isFinite(given) && given >= 0 ? given : PATIENCE_SECONDS;
}

/** How long to wait before the next try; undefined where the answer is final. */
function retryAfterMs({ status, headers, text }: HttpAnswer, attempt: number): number | undefined {
  const isBusy = status === 429 || status === 503 || (status === 409 && text.includes('"idempotency_in_progress"'));
  if (!isBusy) return undefined;
  const given = headers['retry-after'];
  if (given === undefined) return status === 503 ? 500 * 2 ** attempt : undefined;
  const seconds = /^\d+$/.test(given) ? Number(given) : (Date.parse(given) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : undefined;
}

const CERTIFICATE_CODES = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

/** What failed, in words, for an error of a connection. */
export function networkFailure(url: URL, error: unknown): Error {
  if (error instanceof Failure || !(error instanceof Error)) return error as Error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (error.name === 'AbortError') return error;
  const to = `Could not connect to ${url.origin}`;
  if (CERTIFICATE_CODES.test(code))
    return new Failure(`${to}: its certificate is not trusted (${code}).`, EXIT.failed, [
      'If the server has an authority of its own, name its certificate in NODE_EXTRA_CA_CERTS.',
    ]);
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'the connection was refused. Is the server running?',
    ENOTFOUND: `there is no host ${url.hostname}, or no network.`,
    EAI_AGAIN: 'the name of the host could not be looked up. Is there a network?',
    ETIMEDOUT: 'the server did not answer in time.',
    ECONNRESET: 'the connection broke off.',
  };
  return new Failure(`${to}: ${reasons[code] ?? `${message || code}.`}`, EXIT.retry, [
    'Check the address with `svc doctor`, and the proxy in HTTPS_PROXY and NO_PROXY.',
  ]);
}
