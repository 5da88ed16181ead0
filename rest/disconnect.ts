import type { ServerResponse } from 'node:http';

/** Aborted when the client has gone, or with `closing`. */
export function abortOnDisconnect(response: ServerResponse, closing: AbortSignal): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return AbortSignal.any([gone.signal, closing]);
}
