// Applications in the bin: nothing of them runs, and they come back with their page, variables and releases.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { waitFor } from '../support/wait_for';
import { needs } from '../support/runner/programs';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ RETENTION_OF_DELETED_DAYS: '7' });
});
afterAll(async () => {
  const rows = await service.sql<{ id: string }>('select id from applications where deleted_at is null');
  for (const { id } of rows) await service.call('DELETE', `/v2/applications/${id}`);
  for (const { id } of await entries()) await service.call('DELETE', `/v2/bin/${id}`);
  await service.close();
});

const SERVER = `require('http').createServer((q, s) => s.end(process.env.GREETING)).listen(process.env.PORT)`;
const FILES = { 'package.json': '{"scripts":{"start":"node server.js"}}', 'server.js': SERVER };

const entries = async (query = ''): Promise<any[]> =>
  (await service.call('GET', `/v2/projects/${service.project}/bin${query}`)).body.data;
const instances = (id: string): Promise<unknown[]> =>
  service.sql('select 1 from instances where application_id = $1', [id]);

async function deployed(): Promise<TestApplication> {
  const app = await service.application(FILES);
  const put = await service.call('PUT', `/v2/applications/${app.id}/env/GREETING`, { body: { value: 'hello' } });
  expect(put.status).toBe(201);
  expect((await app.deploy()).status).toBe('active');
  expect((await app.visit()).body).toBe('hello');
  return app;
}

async function deleted(id: string): Promise<any> {
  expect((await service.call('DELETE', `/v2/applications/${id}`)).status).toBe(204);
  return (await entries(`?resource_id=${id}`))[0];
}

const list = async (id: string, what: string): Promise<any[]> =>
  (await service.call('GET', `/v2/applications/${id}/${what}`)).body.data;

// A volume is shown at its path by bubblewrap, but for root.
const { test: withVolume } = process.getuid?.() === 0 ? { test } : needs('bwrap');

withVolume(
  'a deleted application stops, and is the same after it was restored',
  async () => {
    const app = await deployed();
    const volume = (await service.call('POST', '/v2/volumes', { body: { name: 'files', size_gb: 1 } })).body.id;
    const attach = { application_id: app.id, mount_path: '/data' };
    expect((await service.call('PATCH', `/v2/volumes/${volume}`, { body: attach })).status).toBe(200);
    const body = { hostname: 'shop.example.com' };
    const domain = (await service.call('POST', `/v2/applications/${app.id}/domains`, { body })).body;
    const metric = { resource_type: 'application', resource_id: app.id, metric: 'cpu_percent', operator: 'gt' };
    const observer = (
      await service.call('POST', '/v2/observers', {
        body: { name: 'Load', type: 'metric', metric: { ...metric, threshold: 90 } },
      })
    ).body.id;
    const schedule = { name: 'tick', cron: '0 3 * * *', command: 'true' };
    await app.post('/schedules', schedule);
    const before = {
      env: await list(app.id, 'env'),
      deployments: await list(app.id, 'deployments'),
      processes: await list(app.id, 'processes'),
      schedules: await list(app.id, 'schedules'),
    };

    const entry = await deleted(app.id);
    expect((await app.get()).code).toBe('not_found');
    expect((await service.call('GET', `/v2/observers/${observer}`)).status).toBe(404);
    expect((await service.call('GET', `/v2/volumes/${volume}`)).body.application_id).toBeNull();
    await waitFor('nothing of it runs', async () => (await instances(app.id)).length === 0);
    expect((await app.visit()).status).toBe(404);

    const answer = await service.call('POST', `/v2/bin/${entry.id}/restore`);
    expect([answer.status, answer.body.notes]).toEqual([200, [expect.stringContaining('shop.example.com')]]);
    await waitFor('it runs again', async () => (await app.get()).status === 'running');
    expect((await app.visit()).body).toBe('hello');
    const changing = { updated_at: expect.anything(), next_run_at: expect.anything() };
    for (const [what, rows] of Object.entries(before))
      expect(await list(app.id, what)).toEqual(
        rows.map((row) => ({ ...row, ...('updated_at' in row && { updated_at: changing.updated_at }) })),
      );
    expect((await list(app.id, 'domains')).map(({ id }: any) => id)).toEqual([domain.id]);
    expect((await service.call('GET', `/v2/volumes/${volume}`)).body).toMatchObject(attach);
    expect((await service.call('GET', `/v2/observers/${observer}`)).body.enabled).toBe(true);
    expect((await app.deploy()).status).toBe('active');
  },
  120_000,
);

test('what was taken meanwhile is said, and a purge leaves nothing', async () => {
  const app = await deployed();
  const hostname = 'taken.example.com';
  await app.post('/domains', { hostname });
  const volume = (await service.call('POST', '/v2/volumes', { body: { name: 'gone', size_gb: 1 } })).body.id;
  const attach = { application_id: app.id, mount_path: '/data' };
  await service.call('PATCH', `/v2/volumes/${volume}`, { body: attach });
  const entry = await deleted(app.id);
  await waitFor(
    'the host name is free',
    async () => (await service.sql('select 1 from domains where hostname = $1', [hostname])).length === 0,
  );
  const other = (await service.call('POST', '/v2/applications', { body: { name: app.name } })).body;
  expect((await service.call('POST', `/v2/applications/${other.id}/domains`, { body: { hostname } })).status).toBe(201);
  expect((await service.call('DELETE', `/v2/volumes/${volume}`)).status).toBe(204);
  const refused = await service.call('POST', `/v2/bin/${entry.id}/restore`);
  expect([refused.status, refused.body.code, refused.body.field]).toEqual([409, 'name_taken', 'name']);
  const answer = await service.call('POST', `/v2/bin/${entry.id}/restore`, { body: { name: 'back-again' } });
  expect(answer.body.notes).toEqual([expect.stringContaining('`gone`'), expect.stringContaining(hostname)]);
  await waitFor('it runs again', async () => (await app.get()).status === 'running');

  const second = await deleted(app.id);
  expect((await service.call('DELETE', `/v2/bin/${second.id}`)).status).toBe(204);
  await waitFor(
    'its row goes',
    async () => (await service.sql('select 1 from applications where id = $1', [app.id])).length === 0,
  );
  expect(await service.sql('select 1 from environment_variables where application_id = $1', [app.id])).toEqual([]);
}, 120_000);
