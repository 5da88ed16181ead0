// Visitors of an application: requests through the ingress, one by one or as steady traffic that is counted.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Visit {
  status: number;
  body: string;
  /** `Cache-Status`, of what a CDN zone answers. */
  cache: string;
}

export interface Count {
  requests: number;
  /** Whatever was not answered with 200: status or error, and the beginning of the body. */
  failed: string[];
  /** Bodies that were seen, each once. */
  bodies: Set<string>;
}

const LANES = 4;
const PAUSE_MS = 5;
const TIMEOUT_MS = 30_000;

/**
 * A request on a separate connection. Browsers resolve *.localhost by themselves; here the address is explicit, and the
 * name is in the header.
 */
export function visit(port: number, host: string, place = '/'): Promise<Visit> {
  return new Promise((resolve, reject) => {
    const request = http.get(
      { host: '127.0.0.1', port, path: place, headers: { Host: `${host}:${port}` }, agent: false, timeout: TIMEOUT_MS },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        const cache = String(response.headers['cache-status'] ?? '');
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body, cache })).on('error', reject);
      },
    );
    request.on('error', reject).on('timeout', () => request.destroy(new Error('no answer in time')));
  });
}

/** Visitors that repeat their request after each response. The returned function stops them. */
export function startTraffic(port: number, host: string, place: string): () => Promise<Count> {
  const count: Count = { requests: 0, failed: [], bodies: new Set() };
  let isOver = false;
  const lane = async (): Promise<void> => {
    while (!isOver) {
      const { status, body } = await visit(port, host, place).catch((error: Error) => ({
        status: 0,
        body: error.message,
      }));
      count.requests += 1;
      if (status === 200) count.bodies.add(body);
      else count.failed.push(`${status} ${body.slice(0, 120)}`);
      await sleep(PAUSE_MS);
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  return async () => {
    isOver = true;
    await lanes;
    return count;
  };
}
