// What a port answers between listening and the faces: the address of the API is part of them, and known only then.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { problem } from '../../core/errors';
import type { RestHandler } from '../../rest/exchange';
import { writeProblem } from '../../rest/problem';
import type { UpgradeHandler } from '../runs/upgrade';

interface StartingFaces {
  rest: RestHandler;
  express: RequestListener;
  upgrade: UpgradeHandler;
}

export function facesThatAnswer503(baseUrl: () => string): StartingFaces {
  const starting = (request: IncomingMessage, response: ServerResponse, requestId: string): void =>
    writeProblem(response, problem('service_unavailable', 'The service is starting. Try again in a second.'), {
      base_url: baseUrl(),
      request_id: requestId,
      instance: (request.url ?? '/').split('?')[0] as string,
      head: request.method === 'HEAD',
      headers: { 'Retry-After': '1' },
    });
  return {
    rest: async (request, response, requestId) => starting(request, response, requestId),
    express: (request, response) => starting(request, response, String(response.getHeader('X-Request-Id') ?? '')),
    // Like any other request, it is answered by those above.
    upgrade: () => false,
  };
}
