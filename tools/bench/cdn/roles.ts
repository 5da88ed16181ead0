// What the processes of tools/bench/cdn do.
import { createReadStream, statSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { openEmbeddedCdn } from '../../../engines/cdn/cache/driver';
import type { CdnZoneSpec } from '../../../engines/cdn/cdn';
import type { CdnEngine } from '../../../engines/cdn/edge/edge';
import { openVarnish } from '../../../drivers/varnish/driver';
import { driverContext } from '../../../core/driver';
import type { Route } from '../../../engines/ingress/ingress';
import { openIngress } from '../../../engines/ingress/http/http';
import { openOutbound } from '../../../core/outbound';
import { serveBench } from './parts';

export const APP_HOST = 'app.example.com';
export const ZONE_HOST = 'zone.example.com';
export const SMALL_BYTES = 1_000;
export const LARGE_BYTES = 1_000_000;
const ENSURE_MS = 60_000;
const CHUNK = Buffer.alloc(64 * 1024, 'x');

export interface HostOptions {
  directory: string;
  originPort: number;
  objectBytesMax: number;
  varnish?: { port: number; cliPort: number; secretFile: string; gatewayPort: number };
}

/** `/small`, `/large`, `/held/<bytes>` (answered when the bench says so), `/stream/<bytes>` and `/chunks/<bytes>`. */
export function runApp(): void {
  const bodies = { '/small': Buffer.alloc(SMALL_BYTES, 'x'), '/large': Buffer.alloc(LARGE_BYTES, 'x') };
  const held: (() => void)[] = [];
  let requests = 0;
  const server = http.createServer((request, response) => {
    requests += 1;
    const url = request.url ?? '/';
    const [, kind, bytes = 0] = /^\/(\w+)(?:\/(\d+))?/.exec(url) ?? [];
    const known = bodies[url as '/small'];
    const length = known ? known.length : Number(bytes);
    response.setHeader('Content-Type', 'application/octet-stream');
    response.setHeader('Cache-Control', 'max-age=3600');
    if (kind !== 'chunks') response.setHeader('Content-Length', length);
    if (known) return void response.end(known);
    if (kind === 'held') return void held.push(() => response.end(Buffer.alloc(length, 'x')));
    sendMany(response, length);
  });
  const release = (): void => held.splice(0).forEach((answer) => answer());
  server.listen(0, '127.0.0.1', () => serveBench(portOf(server), () => requests, release));
}

function sendMany(response: http.ServerResponse, left: number): void {
  for (let rest = left; rest > 0; rest -= CHUNK.length) {
    if (response.destroyed) return;
    if (response.write(CHUNK.subarray(0, rest))) continue;
    const after = rest - CHUNK.length;
    return void response.once('drain', () => sendMany(response, after));
  }
  response.end();
}

/** The plainest server of one file. */
export function runFiles({ file }: { file: string }): void {
  const server = http.createServer((_request, response) => {
    response.setHeader('Content-Length', statSync(file).size);
    createReadStream(file, { highWaterMark: 256 * 1024 }).pipe(response);
  });
  server.listen(0, '127.0.0.1', () => serveBench(portOf(server), () => 0));
}

export async function runHost({ directory, originPort, objectBytesMax, varnish }: HostOptions): Promise<void> {
  const outbound = openOutbound({ isAllowed: () => true, hostsFile: true, resolvers: [], caFile: null });
  const log = (message: string, error: unknown): void => void process.stderr.write(`${message}: ${String(error)}\n`);
  const limits = { bytesMax: 100e9, objectsMax: 2_000_000, memoryBytesMax: 64e6, objectBytesMax, headMs: 600_000 };
  const cdn: CdnEngine = varnish
    ? await openVarnish({
        ...{ outbound, log, objectBytesMax, secretFile: varnish.secretFile },
        ...{
          nodes: [{ host: '127.0.0.1', ...varnish }],
          gateway: { host: '127.0.0.1', port: varnish.gatewayPort, token: 'bench' },
        },
      })
    : openEmbeddedCdn({ outbound, log, directory, ...limits });
  await cdn.driver.ensureZone('cdn_bench', zoneOf(originPort), driverContext(ENSURE_MS));
  let requests = 0;
  const edge: CdnEngine['edge'] = {
    ...cdn.edge,
    handle(request, response, visitor) {
      requests += 1;
      cdn.edge.handle(request, response, visitor);
    },
  };
  const parts = { certificate: async () => null, challenge: async () => null, line: () => undefined, edge };
  const ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, parts });
  ingress.replaceRoutes([routeTo(originPort)]);
  serveBench(ingress.ports.http, () => requests);
}

function zoneOf(port: number): CdnZoneSpec {
  return {
    hosts: [{ host: ZONE_HOST, domain_id: '' }],
    origin: { url: `http://127.0.0.1:${port}`, host_header: 'origin.example.com', is_internal: true },
    ...{ enabled: true, compression: true, force_https: false },
    cache: {
      ...{ default_ttl_seconds: 3600, browser_ttl_seconds: null, respect_origin_headers: true },
      ...{ query_string: 'include', serve_stale: false },
    },
  };
}

function routeTo(port: number): Route {
  return {
    ...{ application_id: 'app_1', preview_id: null, hosts: [APP_HOST], targets: [{ instance_id: 'ins_1', port }] },
    ...{ state: 'running', maintenance: false, force_https: false, request_timeout_ms: 30_000, sticky: false },
  };
}

function portOf(server: http.Server): number {
  return (server.address() as AddressInfo).port;
}
