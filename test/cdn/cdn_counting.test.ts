/** @user any */
// Operations: getCdnZoneMetrics.
// Metrics of CDN zones are exact, by domain too; and what is no proper request is neither counted nor kept.
import { connect } from 'node:net';
import { activeZone, dns, ingressPort, origin, service, setUpCdn, visit, type Body } from '../support/cdn/cdn_cases';
import { waitFor } from '../support/wait_for';

setUpCdn();

/** Sends all at once on one connection. @returns what came until its end */
function exchange(requests: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(ingressPort(), '127.0.0.1', () => socket.write(requests));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('error', reject).on('close', () => resolve(text));
  });
}

const get = (host: string, target: string, more = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;
const last = 'Connection: close\r\n';

async function totals(zone: Body, query = ''): Promise<Record<string, number>> {
  const answer = await service.call('GET', `/v2/cdn_zones/${String(zone.id)}/metrics${query}`);
  expect([query, answer.status, answer.body.errors ?? answer.body.detail]).toEqual([query, 200, undefined]);
  const sums: Record<string, number> = {};
  for (const { metric, points } of answer.body.series as Body[])
    for (const { value } of points as { value: number }[])
      sums[metric as string] = (sums[metric as string] ?? 0) + value;
  return sums;
}

async function domainOf(zone: Body, hostname: string): Promise<Body> {
  const path = `/v2/cdn_zones/${String(zone.id)}/domains`;
  const { body } = await service.call('POST', path, { body: { hostname } });
  dns.set(hostname, 'CNAME', [String(zone.hostname)]);
  expect((await service.call('POST', `${path}/${String(body.id)}/verify`)).body.status).toBe('active');
  await waitFor('it is served', async () => (await visit(hostname, '/none', {}, 'OPTIONS')).status === 200);
  return body;
}

/** Of the zone, at its own host name. */
function bytesOutside([all, one]: readonly [Record<string, number>, Record<string, number>]): number {
  return (all.bandwidth_bytes ?? 0) - (one.bandwidth_bytes ?? 0);
}

describe('metrics', () => {
  it('count each byte of each response, of requests that were sent together too, by domain', async () => {
    const zone = await activeZone();
    const domain = await domainOf(zone, 'counted.example.com');
    // The visit that found it served.
    const before = { requests: 1 };
    const target = '/bytes?max-age=600&bytes=70000';
    const own = await exchange(
      get(zone.hostname, target) + get(zone.hostname, target) + get(zone.hostname, '/x', last),
    );
    const ofDomain = await exchange(
      get('counted.example.com', target) + get('counted.example.com', target, 'Range: bytes=0-9\r\n' + last),
    );
    expect(own.length).toBeGreaterThan(140_000);
    const [all, one] = await waitFor('the counters', async () => {
      const sums = [await totals(zone), await totals(zone, `?domain_id=${String(domain.id)}`)] as const;
      return sums[0].requests === before.requests + 5 && bytesOutside(sums) >= own.length && sums;
    });
    const none = await totals(zone, '?domain_id=cdd_00000000000000000000000000');
    expect([one.requests, none.requests ?? 0]).toEqual([before.requests + 2, 0]);
    expect(bytesOutside([all, one])).toBe(own.length);
    const some = await totals(zone, `?domain_id=${String(domain.id)}&metrics=origin_requests,responses_2xx`);
    expect(Object.keys(some).sort()).toEqual(['origin_requests', 'responses_2xx']);
    expect(ofDomain.length).toBeGreaterThan(70_000);
  });
});

describe('a request that names its host badly', () => {
  it('is answered 400, and nothing of it is kept', async () => {
    const zone = await activeZone();
    const host = String(zone.hostname);
    const line = 'GET /malformed?max-age=600 HTTP/1.1\r\n';
    for (const fields of [
      `Host: ${host}\r\nHost: ${host}\r\n`,
      `Host: ${host}\r\nHost: evil.example.org\r\n`,
      `Host: evil.example.org\r\nhOST: ${host}\r\n`,
      `X: y\r\n`,
      `Host : ${host}\r\n`,
      ` Host: ${host}\r\n`,
      `Host: ${host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n`,
    ])
      expect([fields, (await exchange(`${line}${fields}${last}\r\n`)).slice(0, 12)]).toEqual([fields, 'HTTP/1.1 400']);
    for (const name of [
      `${host}@evil.example.org`,
      `${host}/evil`,
      `${host}.evil.example.org`,
      `evil.example.org,${host}`,
    ])
      expect([name, (await exchange(get(name, '/malformed?max-age=600', last))).slice(0, 12)]).toEqual([
        name,
        expect.stringMatching(/^HTTP\/1\.1 4(00|04)$/),
      ]);
    expect(origin.requests('/malformed')).toEqual([]);
    // Another way to write the same name is the same object, and the origin is told of the name as it is.
    const seen = await exchange(get(`${host.toUpperCase()}.:80`, '/malformed?max-age=600', last));
    expect(seen).toContain('uri-miss; stored');
    expect(origin.requests('/malformed')[0]?.headers['x-forwarded-host']).toBe(host);
    expect((await visit(host, '/malformed?max-age=600')).headers['cache-status']).toBe('edge; hit');
  });
});
