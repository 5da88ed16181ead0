// A service with the cache of CDN zones, an origin behind it and visitors in front of it.
import { startCdnOrigin, type CdnOrigin, type Visited } from './cdn_origin';
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { freePort } from '../processes/free_port';
import { startService, type Answer, type TestService } from '../service';
import { waitFor } from '../wait_for';

export type Body = Answer['body'];

export let service: TestService;
export let origin: CdnOrigin;
export let dns: DnsServer;
let port: number;

/** To be called where tests are declared. */
export function setUpCdn(more: Record<string, string> = {}): void {
  beforeAll(async () => {
    [origin, dns, port] = [await startCdnOrigin(), await startDnsServer(), await freePort()];
    service = await startService({
      worker: true,
      settings: {
        ALLOW_PRIVATE_ADDRESSES: '1',
        DNS_RESOLVERS: dns.address,
        INGRESS_PORT: String(port),
        S3_PORT: String(await freePort()),
        ...more,
      },
    });
  });
  afterAll(async () => {
    await service.close();
    await dns.close();
    await origin.close();
  });
}

export function ingressPort(): number {
  return port;
}

export function visit(
  host: string,
  target: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Visited> {
  return origin.visit(port, host, target, headers, method);
}

let serial = 0;

export function newName(): string {
  return `zone${(serial += 1)}`;
}

export async function activeZone(more: object = {}): Promise<Body> {
  const body = { name: newName(), origin: { type: 'url', url: origin.url }, ...more };
  const made = await service.call('POST', '/v2/cdn_zones', { body, headers: { Prefer: 'wait=20' } });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  return made.body;
}

/** Resolves when the purge is completed. */
export async function purge(zone: Body, body: object): Promise<Body> {
  const made = await service.call('POST', `/v2/cdn_zones/${String(zone.id)}/purges`, { body });
  expect([made.status, made.body.status]).toEqual([201, 'pending']);
  return waitFor('the purge', async () => {
    const got = await service.call('GET', `/v2/cdn_zones/${String(zone.id)}/purges/${String(made.body.id)}`);
    return got.body.status === 'completed' ? got.body : null;
  });
}
