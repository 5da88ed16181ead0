// What GraphQL shows beside an application: its newest deployment and its metrics.
import { applicationUrl } from '../../models/applications/application/url';
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.close());

const QUERY = `query ($id: ID!) { getApplication(id: $id) {
  latest_deployment { number status }
  metrics(metrics: [requests], resolution_seconds: 300) { resolution_seconds series { metric labels { value } } }
} }`;

async function application(name: string): Promise<string> {
  const body = { name, source: { type: 'preset', preset: 'static-site' } };
  return (await service.call('POST', '/v2/applications', { body })).body.id;
}

test('the newest deployment, whatever its status, and metrics by the arguments of REST', async () => {
  const id = await application('one');
  const before = await service.graphql(QUERY, { id });
  expect(before.errors).toBeUndefined();
  expect(before.data.getApplication).toMatchObject({ latest_deployment: null, metrics: { resolution_seconds: 300 } });
  for (let count = 0; count < 2; count += 1)
    await service.call('POST', `/v2/applications/${id}/deployments`, { body: {} });
  const { data } = await service.graphql(QUERY, { id });
  expect(data.getApplication.latest_deployment).toEqual({ number: 2, status: 'queued' });
  const rest = await service.call('GET', `/v2/applications/${id}/metrics?metrics=requests&resolution_seconds=300`);
  expect(data.getApplication.metrics.series).toEqual(
    rest.body.series.map(({ metric, labels }: { metric: string; labels: { value: string }[] }) => ({
      metric,
      labels: labels.map(({ value }) => ({ value })),
    })),
  );
});

test('each of a list has its own', async () => {
  const ids = [await application('two'), await application('three')];
  for (const id of ids) await service.call('POST', `/v2/applications/${id}/deployments`, { body: {} });
  const { data } = await service.graphql(
    '{ listApplications(limit: 2) { data { id latest_deployment { application_id } } } }',
  );
  expect(data.listApplications.data).toEqual(
    [...ids].reverse().map((id) => ({ id, latest_deployment: { application_id: id } })),
  );
});

test('wrong arguments, and more points than a page may have, are refused', async () => {
  const id = await application('four');
  const wrong = await service.graphql(
    'query ($id: ID!) { getApplication(id: $id) { metrics(resolution_seconds: 7) { from } } }',
    { id },
  );
  expect(wrong.errors?.[0].extensions.code).toBe('invalid_query_parameter');
  const many = await service.graphql(
    `query ($id: ID!) { getApplication(id: $id) {
      metrics(from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z", resolution_seconds: 60) { from } } }`,
    { id },
  );
  expect(many.errors?.[0].message).toMatch(/at most 100 points/);
});

describe('url', () => {
  const URL_QUERY = 'query ($id: ID!) { getApplication(id: $id) { default_hostname url } }';
  const read = async (id: string): Promise<{ default_hostname: string; url: string | null }> =>
    (await service.graphql(URL_QUERY, { id })).data.getApplication;
  const portOfIngress = (): string => `:${service.platform.config.ingressPort}`;

  test('is where visitors reach the application: its oldest active domain, else the name of the platform', async () => {
    const id = await application('reached');
    const { default_hostname, url } = await read(id);
    expect(url).toBe(`http://${default_hostname}${portOfIngress()}`);
    for (const hostname of ['*.reached.example.com', 'www.reached.example.com', 'reached.example.com'])
      await service.call('POST', `/v2/applications/${id}/domains`, { body: { hostname } });
    expect((await read(id)).url).toBe(url);
    await service.sql(`update domains set status = 'active' where application_id = $1`, [id]);
    expect((await read(id)).url).toBe(`http://www.reached.example.com${portOfIngress()}`);
  });

  test('is null while web is scaled to 0, and of each of a list its own', async () => {
    const ids = [await application('worker'), await application('shop')];
    const { body } = await service.call('GET', `/v2/applications/${ids[0]}/processes`);
    await service.call('POST', `/v2/applications/${ids[0]}/processes/${body.data[0].id}/scale`, {
      body: { instances: 0 },
    });
    const { data } = await service.graphql('{ listApplications(limit: 2) { data { id url } } }');
    expect(data.listApplications.data).toEqual([
      { id: ids[1], url: expect.stringMatching(/^http:\/\/shop-/) },
      { id: ids[0], url: null },
    ]);
  });
});

test.each([
  [{}, 'http://a.test:8000'],
  [{ ingressPort: 80 }, 'http://a.test'],
  [{ ingressTlsPort: 8443 }, 'http://a.test:8000'],
  [{ ingressTlsPort: 8443, ingressCertFile: '/cert.pem' }, 'https://a.test:8443'],
  [{ ingressTlsPort: 443, ingressCertFile: '/cert.pem' }, 'https://a.test'],
  [{ baseUrl: 'https://platform.test' }, 'http://a.test:8000'],
  [{ baseUrl: 'https://platform.test', trustProxy: 1 }, 'https://a.test'],
  [{ trustProxy: 1 }, 'http://a.test:8000'],
])('an address that opens, with %j', (settings, url) => {
  const usual = { ingressPort: 8000, ingressTlsPort: null, ingressCertFile: null };
  expect(applicationUrl({ ...usual, baseUrl: 'http://platform.test', trustProxy: 0, ...settings }, 'a.test')).toBe(url);
});
