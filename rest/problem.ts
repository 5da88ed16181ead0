// Every error of the REST face leaves through here.
import type { ServerResponse } from 'node:http';
import type { Reply } from '../core/context';
import { Problem, problem, toDocument } from '../core/errors';
import { RESOURCE_METADATA_PATH } from '../core/accounts/oauth';
import { sendText } from './send_text';

/** Converts a thrown error to a problem; other errors become internal errors, whose cause is only logged. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : problem('internal_error');
}

/** The challenge of a 401 (RFC 9110 section 11.6.1, RFC 9728 section 5.1); no header for other statuses. */
export function challengeOf(failure: Problem, baseUrl: string): { 'WWW-Authenticate'?: string } {
  if (failure.status !== 401) return {};
  const own = failure.headers['WWW-Authenticate'] ?? 'Bearer realm="platform"';
  return { 'WWW-Authenticate': `${own}, resource_metadata="${baseUrl}${RESOURCE_METADATA_PATH}"` };
}

/** Writes the problem document; HEAD gets the headers only. */
export function writeProblem(
  response: ServerResponse,
  failure: Problem,
  about: { base_url: string; request_id: string; instance: string; head: boolean; headers?: Reply['headers'] },
): void {
  const text = JSON.stringify(toDocument(failure, about));
  const headers = {
    'X-Request-Id': about.request_id,
    ...about.headers,
    ...failure.headers,
    ...challengeOf(failure, about.base_url),
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
  };
  sendText(response, failure.status, headers, text, about.head);
}
