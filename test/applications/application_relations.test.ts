// What GraphQL shows beside an application: its newest deployment and its metrics.
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
  const body = { name, source: { type: 'template', template: 'static-site' } };
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
