// CreateBucket of ceph/s3-tests at our endpoint.
import { Agent, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { EMPTY_SHA256, signedHeaders, type Credentials } from '../../../core/protocols/sigv4';

/** A connection for each request: a gateway sends a body after some answers to HEAD, before the next answer. */
export const ONCE = new Agent({ keepAlive: false });

/** CreateBucket as it came, and then without the settings that the suite does not expect. */
export async function createAsBefore(
  target: string,
  { accessKeyId, secretAccessKey }: Credentials,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<'answered' | 'to the endpoint'> {
  if (request.method === 'DELETE') return 'to the endpoint';
  const body = await buffer(request);
  const url = new URL(target + request.url);
  const made = await ask(url, 'PUT', request.rawHeaders, body);
  const unexpected = ['publicAccessBlock', ...(request.headers['x-amz-object-ownership'] ? [] : ['ownershipControls'])];
  for (const setting of made.status === 200 ? unexpected : []) {
    const at = new URL(`${url.origin}${url.pathname}?${setting}=`);
    const credentials = { accessKeyId, secretAccessKey };
    const signed = { method: 'DELETE', url: at, payloadHash: EMPTY_SHA256, region: 'local', credentials };
    await fetch(at, { method: 'DELETE', headers: signedHeaders(signed) });
  }
  response.writeHead(made.status, made.headers).end(made.body);
  return 'answered';
}

function ask(url: URL, method: string, headers: string[], body: Buffer) {
  return new Promise<{ status: number; headers: string[]; body: Buffer }>((resolve, reject) => {
    const onward = send({
      ...{ hostname: url.hostname, port: url.port, path: url.pathname + url.search },
      ...{ method, headers: headers as never, setHost: false, agent: ONCE },
    });
    onward.on('error', reject).on('response', (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece)).on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 502, headers: answer.rawHeaders, body: Buffer.concat(pieces) }),
      );
    });
    onward.end(body);
  });
}
