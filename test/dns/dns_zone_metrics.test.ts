// Metrics of DNS zones (getDnsZoneMetrics): every query of a name of the zone is counted, by the type that was asked
// for.
import { Resolver } from 'node:dns/promises';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

jest.setTimeout(60_000);

let service: TestService;
let port: number;

beforeAll(async () => {
  port = await freePort();
  service = await startService({ worker: true, settings: { DNS_PORT: String(port) } });
});

afterAll(() => service.close());

test('queries are counted by record type and response', async () => {
  const zone = (await service.call('POST', '/v2/dns_zones', { body: { name: 'counted.example.com' } })).body;
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  for (let turn = 0; turn < 100; turn += 1) {
    if (await resolver.resolveNs(zone.name).catch(() => null)) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  for (let count = 0; count < 3; count += 1) {
    await expect(resolver.resolve4(`nothing.${zone.name}`)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  }
  const place = `/v2/dns_zones/${zone.id}/metrics?metrics=queries,responses_nxdomain`;
  const totals = async (): Promise<Record<string, number>> => {
    const { body } = await service.call('GET', place);
    const entries = body.series.map(({ metric, labels, points }: (typeof body.series)[number]) => [
      `${metric} ${labels[0].value}`,
      points.reduce((sum: number, { value }: { value: number }) => sum + value, 0),
    ]);
    return Object.fromEntries(entries) as Record<string, number>;
  };
  let found = await totals();
  for (let turn = 0; turn < 80 && !found['responses_nxdomain A']; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    found = await totals();
  }
  expect(found).toMatchObject({ 'queries A': 3, 'responses_nxdomain A': 3, 'queries NS': expect.any(Number) });
});

test('another metric is refused, and so is another zone', async () => {
  const zone = (await service.call('POST', '/v2/dns_zones', { body: { name: 'refused.example.com' } })).body;
  const unknown = await service.call('GET', `/v2/dns_zones/${zone.id}/metrics?metrics=latency`);
  expect([unknown.status, unknown.body.code]).toEqual([400, 'invalid_query_parameter']);
  const other = await service.newProject();
  const foreign = await service.call('GET', `/v2/dns_zones/${zone.id}/metrics`, { key: other.key, project: other.id });
  expect(foreign.status).toBe(404);
});
