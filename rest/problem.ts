// Every error of the REST face leaves through here.
import type { ServerResponse } from 'node:http';
import { Problem, problem, toDocument } from '../core/errors';

/** What was thrown, as a problem; anything that isn't one is an internal error whose cause only the log sees. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : problem('internal_error');
}

/** Writes the problem document; HEAD gets the headers only. */
export function writeProblem(response: ServerResponse, failure: Problem, place: { base_url: string; request_id: string; instance: string; head: boolean; headers?: Record<string, string> }): void {
  const text = JSON.stringify(toDocument(failure, place));
  const headers = { 'X-Request-Id': place.request_id, ...place.headers, ...failure.headers, 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' };
  writeText(response, failure.status, headers, text, place.head);
}

/** Writes headers and body at once, with the length; HEAD gets the headers only. */
export function writeText(response: ServerResponse, status: number, headers: Record<string, string | number>, text: string, isHead: boolean): void {
  const bytes = Buffer.byteLength(text);
  headers['Content-Length'] = bytes;
  response.writeHead(status, headers);
  if (isHead) response.end();
  // A byte for each letter: it is all ASCII, and need not be encoded as UTF-8 once more.
  else response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
