/** @tier heavy @quarter 3 @covers engines/cdn/cdn server/agents/cdn/ */
// A CDN zone before an application: what the application sees of its visitors, and custom domains with records in the
// zone of the project and certificates of pebble.
import http, { type IncomingHttpHeaders } from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { startDeployService, type DeployService, type TestApplication } from '../../support/deployments/deploy';
import { startDnsParent, type DnsParent } from '../../support/dns/dns_parent';
import { startDnsServer, type DnsServer } from '../../support/dns/dns_server';
import { freePort } from '../../support/processes/free_port';
import { openPebble, type Pebble } from '../../support/ingress/pebble';
import { webCommand } from '../../support/git/repositories';
import { needs } from '../../support/runner/programs';
import type { Answer } from '../../support/service';
import { waitFor } from '../../support/wait_for';
import { withConfig } from '../../support/config';

const { describe: described } = needs('pebble', 'openssl');
jest.setTimeout(120_000);

const DOMAIN = 'static.shop.example.com';
/** Where visitors come from: the ingress asks from another one. */
const VISITOR = '127.0.0.5';
const WAITED = { headers: { Prefer: 'wait=20' } };
const ECHO = `
require('http').createServer((request, response) => {
  const { url, headers } = request;
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'max-age=600' });
  response.end(JSON.stringify({ url, headers, filling: url === '/large' ? 'x'.repeat(100000) : '' }));
}).listen(process.env.PORT, '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
`;

interface Seen {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

described('a CDN zone before an application', () => {
  let service: DeployService;
  let parent: DnsParent;
  let resolver: DnsServer;
  let pebble: Pebble;
  let application: TestApplication;
  let zone: Answer['body'];
  let names: Answer['body'];
  let root: string;
  let ports: { http: number; https: number };

  beforeAll(async () => {
    const [dnsPort, httpPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
    ports = { http: httpPort, https: httpsPort };
    parent = await startDnsParent('example.com', await freePort());
    // The addresses at the end of the records, which are those of the ingress.
    resolver = await startDnsServer({ [`${DOMAIN} A`]: ['127.0.0.1'] });
    pebble = await openPebble({ httpPort, dns: resolver.address, validSeconds: 604_800 });
    await pebble.start();
    root = await pebble.root();
    service = await startDeployService({
      ...{ INGRESS_PORT: String(httpPort), INGRESS_TLS_PORT: String(httpsPort) },
      ...{ DNS_PORT: String(dnsPort), ...withConfig({ dnsRoots: [parent.address] }), DNS_RESOLVERS: resolver.address },
      ...{ ACME_DIRECTORY: pebble.directory, ACME_CA_FILE: pebble.caFile },
    });
    names = await created('/v2/dns_zones', { name: 'shop.example.com' });
    await parent.delegate(names.name, names.name_servers);
    await service.call('POST', `/v2/dns_zones/${names.id}/verify`);
    application = await service.application(webCommand('node server.js', { 'server.js': ECHO }));
    expect((await application.deploy()).status).toBe('active');
    const origin = { type: 'application', application_id: application.id };
    zone = await created('/v2/cdn_zones', { name: 'shop', origin });
    await untilActive();
  }, 240_000);
  afterAll(async () => {
    await service?.close();
    await pebble?.close();
    await resolver?.close();
    await parent?.close();
  });

  async function created(path: string, body: object): Promise<Answer['body']> {
    const answer = await service.call('POST', path, { body, ...WAITED });
    expect([path, answer.status, answer.text]).toEqual([path, 201, expect.anything()]);
    return answer.body;
  }

  const untilActive = (): Promise<true> =>
    waitFor('the zone', async () => {
      const { status, status_reason } = (await service.call('GET', `/v2/cdn_zones/${zone.id}`)).body;
      if (status === 'failed') throw new Error(status_reason);
      return status === 'active';
    });

  const changed = async (body: object): Promise<void> => {
    expect((await service.call('PATCH', `/v2/cdn_zones/${zone.id}`, { body, ...WAITED })).status).toBe(200);
    await untilActive();
  };

  function visit(scheme: 'http' | 'https', host: string, path: string, more: http.RequestOptions = {}): Promise<Seen> {
    return new Promise((resolve, reject) => {
      const common = { host: '127.0.0.1', path, localAddress: VISITOR, agent: false as const, headers: { host } };
      const request =
        scheme === 'http'
          ? http.get({ ...common, port: ports.http, ...more })
          : https.get({ ...common, port: ports.https, servername: host, ca: root });
      request.on('error', reject);
      request.on('response', (response) => {
        let body = '';
        response.on('data', (chunk) => (body += String(chunk))).on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
      });
    });
  }
  const headersIn = ({ body }: Seen): Record<string, string> =>
    (JSON.parse(body) as { headers: Record<string, string> }).headers;
  const domainsPath = (): string => `/v2/cdn_zones/${zone.id}/domains`;
  const recordsOf = async (): Promise<string[]> =>
    (await service.call('GET', `/v2/dns_zones/${names.id}/records?limit=100`)).body.data
      .filter(({ managed_by }: Answer['body']) => managed_by)
      .map(({ type, name, value }: Answer['body']) => `${type} ${name} ${value}`);

  test('the application is asked once, and told of the visitor', async () => {
    const first = await visit('http', zone.hostname, '/once');
    expect(first.headers['cache-status']).toBe('edge; fwd=uri-miss; stored');
    const { host, via, ...seen } = headersIn(first);
    expect([host, via]).toEqual([application.host, '1.1 edge']);
    expect(seen).toMatchObject({ 'x-forwarded-host': zone.hostname, 'x-forwarded-proto': 'http' });
    expect(seen['x-forwarded-for']?.split(',')[0]).toBe(VISITOR);
    expect(seen['x-platform-edge']).toBeUndefined();
    const second = await visit('http', zone.hostname, '/once');
    expect([second.headers['cache-status'], second.body]).toEqual(['edge; hit', first.body]);
  });

  test('nobody else is believed', async () => {
    const headers = { host: application.host, 'x-platform-edge': 'x'.repeat(64), 'x-forwarded-for': '192.0.2.66' };
    const seen = headersIn(await visit('http', application.host, '/', { headers }));
    expect([seen['x-forwarded-for'], seen['x-platform-edge']]).toEqual([VISITOR, undefined]);
    const through = await visit('http', zone.hostname, '/strange', { headers: { ...headers, host: zone.hostname } });
    expect(headersIn(through)['x-forwarded-for']?.split(',')[0]).toBe(VISITOR);
  });

  test('a domain in the zone of the project: record, certificate, https and the redirect to it', async () => {
    const domain = await created(domainsPath(), { hostname: DOMAIN });
    expect(domain.status).toBe('active');
    expect(await recordsOf()).toEqual([`CNAME static ${zone.hostname}`]);
    await waitFor('the certificate', async () => {
      const { certificate } = (await service.call('GET', `${domainsPath()}/${domain.id}`)).body;
      if (certificate.status === 'failed') throw new Error(certificate.error);
      return certificate.status === 'issued';
    });
    const secure = await waitFor('https', () => visit('https', DOMAIN, '/secure').catch(() => null));
    expect([secure.status, headersIn(secure)['x-forwarded-proto']]).toEqual([200, 'https']);
    const to = `https://${DOMAIN}`;
    const redirected = await waitFor('the redirect', async () => {
      const seen = await visit('http', DOMAIN, '/a?b=c');
      return seen.status === 308 && seen;
    });
    expect(redirected.headers).toMatchObject({ location: `${to}/a?b=c`, 'cache-status': 'edge' });
    // An address with its host, as proxies send it, and a port that the visitor has named.
    expect((await visit('http', DOMAIN, `http://${DOMAIN}/a`)).headers.location).toBe(`${to}/a`);
    const named = await visit('http', DOMAIN, '/a', { headers: { host: `${DOMAIN}:${ports.http}` } });
    expect(named.headers.location).toBe(`https://${DOMAIN}:${ports.https}/a`);
    // A name without a certificate is served as it is.
    expect((await visit('http', zone.hostname, '/once')).status).toBe(200);
    await changed({ force_https: false });
    expect((await visit('http', DOMAIN, '/plain')).status).toBe(200);
    await changed({ force_https: true });
    expect((await visit('http', DOMAIN, '/plain')).status).toBe(308);
  });

  test('HTTP/2 is counted for its domain, with its bytes', async () => {
    const [domain] = (await service.call('GET', domainsPath())).body.data;
    const bytes = await http2Bytes();
    expect(bytes).toBeGreaterThan(300_000);
    // All else that was asked for at this name is small.
    const totals = await waitFor('the counters', async () => {
      const { bandwidth_bytes = 0, requests = 0 } = await totalsOf(domain.id);
      return bandwidth_bytes > bytes && { bandwidth_bytes, requests };
    });
    expect(totals.requests).toBeGreaterThanOrEqual(3);
  });

  async function totalsOf(domain_id: string): Promise<Record<string, number>> {
    const { body } = await service.call('GET', `/v2/cdn_zones/${zone.id}/metrics?domain_id=${domain_id}`);
    return Object.fromEntries(
      body.series.map(({ metric, points }: Answer['body']) => [
        metric,
        points.reduce((sum: number, { value }: { value: number }) => sum + value, 0),
      ]),
    );
  }

  /** Three requests on one connection. @returns bytes of their bodies */
  async function http2Bytes(): Promise<number> {
    const session = http2.connect(`https://127.0.0.1:${ports.https}`, { servername: DOMAIN, ca: root });
    const ask = (): Promise<number> =>
      new Promise((resolve, reject) => {
        let bytes = 0;
        const stream = session.request({ ':path': '/large', ':authority': DOMAIN });
        stream.on('data', (chunk: Buffer) => (bytes += chunk.length)).on('error', reject);
        stream.on('end', () => resolve(bytes)).end();
      });
    try {
      return (await Promise.all([ask(), ask(), ask()])).reduce((sum, one) => sum + one, 0);
    } finally {
      session.close();
    }
  }

  test('host_header is what the application is asked for', async () => {
    const path = `/v2/applications/${application.id}/domains`;
    const www = await created(path, { hostname: 'www.shop.example.com' });
    expect(www.status).toBe('active');
    const origin = { type: 'application', application_id: application.id };
    await changed({ origin: { ...origin, host_header: 'www.shop.example.com' } });
    const seen = await waitFor('the route', async () => {
      const one = await visit('https', DOMAIN, '/named');
      return one.status === 200 && one;
    });
    expect(headersIn(seen)).toMatchObject({ host: 'www.shop.example.com', 'x-forwarded-host': DOMAIN });
    await changed({ origin });
    expect(headersIn(await visit('https', DOMAIN, '/again')).host).toBe(application.host);
    expect((await service.call('DELETE', `${path}/${www.id}`)).status).toBe(204);
  });

  test('its application is not deleted, and records go with the domain or the zone', async () => {
    const refused = await service.call('DELETE', `/v2/applications/${application.id}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'resource_in_use']);
    const second = await created(domainsPath(), { hostname: 'media.shop.example.com' });
    await waitFor('the records', async () => (await recordsOf()).length === 2);
    expect((await service.call('DELETE', `${domainsPath()}/${second.id}`)).status).toBe(204);
    await waitFor('the record of the domain', async () => (await recordsOf()).length === 1);
    expect((await service.call('DELETE', `/v2/cdn_zones/${zone.id}`)).status).toBe(204);
    await waitFor('the record of the zone', async () => (await recordsOf()).length === 0);
    await waitFor('its end', async () => (await visit('http', DOMAIN, '/')).status === 404);
  });
});
