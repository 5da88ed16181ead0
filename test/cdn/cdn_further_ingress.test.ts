// Host names of CDN zones at an ingress that does not serve them: `npm run ingress`.
import { endPrograms, startProgram } from '../support/processes/program';
import { visitHost } from '../support/deployments/deploy';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { CDN_DOMAIN: 'cdn.example.net' } });
});
afterAll(async () => {
  await endPrograms();
  await service.close();
});

test('they are answered as served elsewhere, and unknown ones as unknown', async () => {
  const origin = { type: 'url', url: 'https://origin.example.com' };
  const zone = await service.call('POST', '/v2/cdn_zones', { body: { name: 'assets', origin } });
  expect(zone.status).toBe(201);
  const own = { hostname: 'static.example.org' };
  const { status, body } = await service.call('POST', `/v2/cdn_zones/${zone.body.id}/domains`, { body: own });
  expect([status, body.hostname]).toEqual([201, own.hostname]);
  await service.sql(`update domains set status = 'active' where id = $1`, [body.id]);
  const port = await freePort();
  const { databaseUrl, config } = service.platform;
  const settings = { DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: config.dataDir, WORKLOADS: 'kubernetes' };
  const program = startProgram(
    { ...settings, REGISTRY_PORT: '5000', INGRESS_PORT: String(port) },
    { entry: 'server/ingress.ts' },
  );
  await program.ready();
  for (const host of [zone.body.hostname, own.hostname]) {
    const answer = await visitHost(port, host);
    expect([answer.status, JSON.parse(answer.body).detail]).toEqual([
      421,
      'Another ingress of the platform serves this address. The DNS records of the name must lead there.',
    ]);
  }
  expect((await visitHost(port, 'nobody.example.org')).status).toBe(404);
}, 60_000);
