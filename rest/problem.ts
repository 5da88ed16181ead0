// Every error of the REST face leaves through here.
import type { ServerResponse } from 'node:http';
import { Problem, problem, toDocument } from '../core/errors';
import { writeText } from './write';

/** What was thrown, as a problem; anything that isn't one is an internal error whose cause only the log sees. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : problem('internal_error');
}

/** Writes the problem document; HEAD gets the headers only. */
export function writeProblem(
  response: ServerResponse,
  failure: Problem,
  place: { base_url: string; request_id: string; instance: string; head: boolean; headers?: Record<string, string> },
): void {
  const text = JSON.stringify(toDocument(failure, place));
  const headers = {
    'X-Request-Id': place.request_id,
    ...place.headers,
    ...failure.headers,
    'Content-Type': 'application/problem+json',
    'Cache-Control': 'no-store',
  };
  writeText(response, failure.status, headers, text, place.head);
}
