// Not fetch, which tidies paths, adds fields and unpacks bodies.
import http from 'node:http';

export interface AnswerAsSent {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** @param address whose path is sent as it stands */
export function getAsWritten(
  address: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<AnswerAsSent> {
  const [, origin = '', target = ''] = /^(http:\/\/[^/]+)(.*)$/.exec(address) ?? [];
  return new Promise((resolve, reject) => {
    const request = http.request(origin, { path: target, headers, method }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
      response.on('error', reject);
    });
    request.on('error', reject).end();
  });
}
