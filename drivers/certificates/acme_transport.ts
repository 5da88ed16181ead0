// HTTP transport of acme-client. Its default transport waits and retries by itself, beyond the deadline of a job step,
// and loses the cause of a broken connection.
import * as http from 'node:http';
import * as https from 'node:https';
import { rootCertificates } from 'node:tls';
import type { axios } from 'acme-client';
import { toOutage, toRefusal, type AcmeProblem } from './acme_problem';

type AcmeTransport = Extract<(typeof axios)['defaults']['adapter'], (...given: never[]) => unknown>;

interface Reply {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
}

const RESPONSE_TIMEOUT_MS = 15_000;
const RESPONSE_BYTES_MAX = 1 << 20;
/** A longer delay than a day is a mistake of the authority, or of its clock. */
const RETRY_AFTER_MAX_MS = 86_400_000;
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/** @param roots PEM, additional trusted roots. Rejects with a DriverError for each error response. */
export function openAcmeTransport(roots: string | null): AcmeTransport {
  const agent = roots === null ? undefined : new https.Agent({ ca: [...rootCertificates, roots] });
  return async (config) => {
    const headers = config.headers.toJSON() as http.OutgoingHttpHeaders;
    const method = (config.method ?? 'get').toUpperCase();
    const {
      status,
      headers: answered,
      text,
    } = await send(new URL(config.url ?? ''), { method, headers, agent }, config.data as string | undefined);
    requireSuccess(status, answered, text);
    return { data: text, status, statusText: '', headers: answered as Record<string, string>, config };
  };
}

function send(url: URL, options: https.RequestOptions, body: string | undefined): Promise<Reply> {
  const client = url.protocol === 'https:' ? https : http;
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  return new Promise<Reply>((resolve, reject) => {
    const request = client.request(
      url,
      { ...options, agent: url.protocol === 'https:' ? options.agent : undefined, signal },
      (response) => {
        collect(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
          reject,
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  }).catch((error: NodeJS.ErrnoException) => {
    throw Object.assign(toOutage(signal.aborted ? 'no response in time' : (error.code ?? error.name), null), {
      cause: error,
    });
  });
}

async function collect(response: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > RESPONSE_BYTES_MAX) throw Object.assign(new Error('the response is too long'), { code: 'too long' });
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function requireSuccess(status: number, headers: http.IncomingHttpHeaders, text: string): void {
  if (status >= 200 && status < 300) return;
  const pause = retryAfterMsOf(headers['retry-after']);
  const problem = parse(text);
  // acme-client retries with the nonce of this response (section 6.5).
  if (problem.type === BAD_NONCE) return;
  if (status === 429) throw toRefusal({ ...problem, type: 'rateLimited' }, pause);
  if (status >= 500 || !problem.type) throw toOutage(`status ${status}`, pause);
  throw toRefusal(problem, pause);
}

function parse(text: string): AcmeProblem {
  try {
    return (JSON.parse(text) as AcmeProblem | null) ?? {};
  } catch {
    return {};
  }
}

/** Seconds or a date (RFC 9110 section 10.2.3). */
function retryAfterMsOf(header: string | undefined): number | null {
  if (header === undefined) return null;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return ms > 0 ? Math.min(ms, RETRY_AFTER_MAX_MS) : null;
}
