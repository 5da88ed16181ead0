// What a port answers between listening and the faces: the address of the API is part of them, and known only then.
import type { RequestListener, ServerResponse } from 'node:http';
import type { RestHandler } from '../../rest/exchange';
import { NOSNIFF } from '../../rest/send_text';
import type { UpgradeHandler } from '../runs/upgrade';

export interface StartingFaces {
  rest: RestHandler;
  express: RequestListener;
  upgrade: UpgradeHandler;
}

export function facesThatAnswer503(): StartingFaces {
  const starting = (response: ServerResponse, headers = {}): void =>
    void response.writeHead(503, { ...headers, ...NOSNIFF, 'Retry-After': '1' }).end();
  return {
    rest: async (_, response, requestId) => starting(response, { 'X-Request-Id': requestId }),
    express: (_, response) => starting(response),
    // Like any other request, it is answered by those above.
    upgrade: () => false,
  };
}
