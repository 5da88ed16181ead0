// What Express answers where no route does, and where one has failed: problem documents, as everywhere.
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { problem, type Problem } from '../../core/errors';
import { asProblem, writeProblem } from '../../rest/problem';
import type { Platform } from '../platform/platform';

/** Codes of what Express and its parsers of bodies refuse, by their status. */
const REFUSALS: Record<number, Problem['code']> = { 413: 'payload_too_large', 415: 'unsupported_media_type' };

/** To be used behind all routes. */
export function lastHandlers({ config, log }: Pick<Platform, 'config' | 'log'>): [RequestHandler, ErrorRequestHandler] {
  const respond = (request: Request, response: Response, failure: Problem): void => {
    const request_id = String(response.getHeader('X-Request-Id'));
    const about = { request_id, instance: request.path, head: request.method === 'HEAD' };
    writeProblem(response, failure, { base_url: config.baseUrl, ...about });
  };
  return [
    (request, response) => respond(request, response, problem('route_not_found')),
    // Express tells it from the others by its four parameters.
    (error: { status?: number }, request, response, _next) => {
      const { status = 500 } = error;
      if (status >= 500) log.error({ err: error, request_id: response.getHeader('X-Request-Id') }, 'request failed');
      if (response.headersSent) return void response.destroy();
      if (status < 500) return respond(request, response, problem(REFUSALS[status] ?? 'malformed_request'));
      respond(request, response, asProblem(error));
    },
  ];
}
