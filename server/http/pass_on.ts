// Requests for files of the host that arrive at a process on another machine, which has not got them.
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import { pipeline } from 'node:stream/promises';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';

/** So that two processes that name each other do not send a request to and fro. */
const PASSED_ON = 'x-platform-passed-on';
/** Without a byte in either direction. */
const SILENCE_MS = 60_000;
/** Once an archive has been sent: it waits for its turn, which is another check, and is checked. */
const CHECKED_WITHIN_MS = 2 * limits.archiveCheckSecondsMax * 1000 + SILENCE_MS;
/** Of one connection alone (RFC 9110 section 7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'proxy-authorization'];

/** Whether `passOn` has sent the request. */
export function isPassedOn({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers[PASSED_ON] !== undefined;
}

/**
 * Sends a GET, HEAD or PUT on as it came, and answers with what comes back.
 * @param base scheme, host and port of the other process
 * @throws service_unavailable where it does not answer
 */
export async function passOn(base: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const target = new URL(base);
  const { method, url = '/' } = request;
  const headers: http.OutgoingHttpHeaders = { ...request.headers, host: target.host, [PASSED_ON]: '1' };
  for (const name of HOP_BY_HOP) delete headers[name];
  // What is refused by its head must not be sent: a refusal is lost where the other side closes while we write.
  if (method === 'PUT') headers.expect = '100-continue';
  const client = target.protocol === 'https:' ? https : http;
  const onward = client.request(target, { method, path: url, headers, timeout: SILENCE_MS, agent: false });
  onward.on('timeout', () => onward.destroy(new Error('silent')));
  response.once('close', () => onward.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    onward.once('response', resolve).once('error', reject);
  });
  if (method !== 'PUT') onward.end();
  else onward.once('finish', () => onward.setTimeout(CHECKED_WITHIN_MS));
  onward.once('continue', () => {
    if (request.headers.expect) response.writeContinue();
    request.pipe(onward);
  });
  const answer = await answered.catch(() => {
    throw problem('service_unavailable', 'The machine with the files does not answer.');
  });
  const given = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.includes(name));
  response.writeHead(answer.statusCode ?? 502, Object.fromEntries(given));
  await pipeline(answer, response);
}
