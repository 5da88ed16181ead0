/** @tier heavy @quarter 3 @covers jobs/applications engines/ingress drivers/runtime */
// Requests go on while everything below them changes: none is lost.
import { job } from '../../jobs/applications/application';
import { progressing, type JobContext } from '../../jobs/job';
import {
  GIVEN_UP_SOON,
  leftOvers,
  startDeployService,
  type DeployService,
  type TestApplication,
} from '../support/deployments/deploy';
import { broken, nodeApp, staticSite, webCommand } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const web = async (application: TestApplication): Promise<{ id: string; status: string }> =>
  (await application.get('/processes')).data.find(({ type }: { type: string }) => type === 'web');
const running = (application: TestApplication): Promise<unknown> =>
  waitFor(
    `${application.name} runs`,
    async () => (await application.get()).status === 'running' && (await web(application)).status === 'running',
  );
const only = (application: TestApplication, count: number): Promise<unknown> =>
  waitFor(`${count} instances`, async () => {
    const { data } = await application.get('/instances');
    return data.length === count && data.every(({ status }: { status: string }) => status === 'running');
  });

/** Commits of activations take a second, as on a slow disk. */
const SLOW_COMMIT = [
  `create function slow_commit() returns trigger language plpgsql as 'begin perform pg_sleep(1); return null; end'`,
  `create constraint trigger slow_commit after update of status on deployments deferrable initially deferred for each
    row when (new.status = 'active') execute function slow_commit()`,
];

test('whoever sees that a deployment is active is served by it', async () => {
  const application = await service.application(nodeApp('v1'));
  for (const statement of SLOW_COMMIT) await service.sql(statement);
  try {
    const { id } = await application.ask();
    await waitFor('the first answer', async () => (await application.visit()).status === 200);
    expect((await application.get(`/deployments/${id}`)).status).toBe('deploying');
    expect((await application.ended(id)).status).toBe('active');
  } finally {
    await service.sql('drop function slow_commit cascade');
  }
}, 60_000);

test('an application whose version went into service since its row was read keeps its instances', async () => {
  const application = await service.application(nodeApp('v1'));
  expect((await application.deploy()).status).toBe('active');
  await running(application);
  const before = (await application.get('/instances')).data;
  const [row] = await service.sql<never>('select * from applications where id = $1', [application.id]);
  const context = { sql: service.platform.database } as unknown as JobContext;
  expect(await job.reconcile({ ...(row as unknown as object), status: 'deploying' } as never, context)).toEqual(
    progressing(0),
  );
  await only(application, 1);
  expect((await application.get('/instances')).data[0].id).toBe(before[0].id);
}, 60_000);

test('no request is lost in a deployment, a rollback, scaling up and down, and a restart', async () => {
  const application = await service.application(nodeApp('v1'));
  const first = await application.deploy();
  expect(first.status).toBe('active');
  await running(application);
  const traffic = application.traffic('/', 3);
  const slow = application.traffic('/slow', 1);

  application.push(nodeApp('v2'));
  const second = await application.deploy();
  expect(second.status).toBe('active');
  expect((await application.visit()).body).toBe('v2');
  await only(application, 1);
  expect((await application.get(`/deployments/${first.id}`)).status).toBe('superseded');

  const back = await application.ended((await application.post('/rollback', { deployment_id: first.id })).id);
  expect(back).toMatchObject({ status: 'active', trigger: 'rollback', source_deployment_id: first.id });
  expect((await application.log(back.id)).join('\n')).not.toMatch(/Fetching|Building/);
  expect((await application.visit()).body).toBe('v1');
  await only(application, 1);

  const { id } = await web(application);
  await application.post(`/processes/${id}/scale`, { instances: 3 });
  await only(application, 3);
  await application.post(`/processes/${id}/scale`, { instances: 1 });
  await only(application, 1);

  const [{ id: instance }] = (await application.get('/instances')).data;
  await service.call('PUT', `/v2/applications/${application.id}/env/LATER`, { body: { value: 'set' } });
  await application.post('/restart', {});
  await running(application);
  await only(application, 1);
  expect((await application.get('/instances')).data[0].id).not.toBe(instance);
  expect(JSON.parse((await application.visit('/env')).body).LATER).toBe('set');

  const [quick, slowly] = [await traffic.stop(), await slow.stop()];
  expect(quick.lost).toEqual([]);
  expect(slowly.lost).toEqual([]);
  expect(quick.total).toBeGreaterThan(100);
  expect([...quick.seen].sort()).toEqual(['v1', 'v2']);
}, 90_000);

test('a version that does not become healthy never gets a request, and the old one goes on', async () => {
  const application = await service.application(nodeApp('good'), { health_check: { type: 'http', path: '/health' } });
  expect((await application.deploy()).status).toBe('active');
  await service.call('PATCH', `/v2/applications/${application.id}/settings`, { body: GIVEN_UP_SOON });
  const traffic = application.traffic('/', 2);
  application.push({
    ...nodeApp('bad'),
    'server.js': `require('http').createServer((q, a) => a.writeHead(500).end('bad'))
      .listen(process.env.PORT, '127.0.0.1')`,
  });
  const failed = await application.deploy();
  expect(failed.status).toBe('failed');
  expect(failed.status_reason).toContain('it answered GET /health with status 500');
  application.push(broken.build());
  expect((await application.deploy()).status).toBe('failed');
  const { lost, seen } = await traffic.stop();
  expect(lost).toEqual([]);
  expect([...seen]).toEqual(['good']);
  expect((await application.get()).status).toBe('running');
  await only(application, 1);
}, 60_000);

test('what crashes is started again; what ends again and again is crashed, and says why', async () => {
  const application = await service.application(nodeApp('v1'));
  await application.deploy();
  await running(application);
  await application.visit('/crash').catch(() => null);
  await waitFor('the restart', async () => (await application.get('/instances')).data[0]?.restart_count === 1);
  await only(application, 1);
  expect((await application.visit()).body).toBe('v1');
  // As if it had ended four times more in the last minutes.
  await service.sql(
    `update instances set exits = (select jsonb_agg(to_char(now() at time zone 'utc' - interval '5 minutes',
      'YYYY-MM-DD"T"HH24:MI:SS"Z"')) from generate_series(1, 4)) where application_id = $1`,
    [application.id],
  );
  await application.visit('/crash').catch(() => null);
  const crashed = await waitFor('crashed', async () => {
    const found = await application.get();
    return found.status === 'crashed' ? found : null;
  });
  expect(crashed.status_reason).toMatch(/^Process type web: The app exited with code 3/);
  expect((await web(application)).status).toBe('crashed');
  expect((await application.visit()).status).toBe(503);
  await service.sql(`update instances set exits = '[]', next_at = now() where application_id = $1`, [application.id]);
  await running(application);
}, 60_000);

test('stop and start', async () => {
  const application = await service.application(staticSite('here'));
  await application.deploy();
  await running(application);
  await application.post('/stop');
  await waitFor('stopped', async () => (await application.get()).status === 'stopped');
  expect((await application.get('/instances')).data).toEqual([]);
  expect((await application.visit()).status).toBe(503);
  await application.post('/start');
  await running(application);
  expect((await application.visit()).body).toContain('here');
  await application.post('/stop');
  await waitFor('stopped', async () => (await application.get()).status === 'stopped');
  application.push(staticSite('there'));
  expect((await application.deploy()).status).toBe('active');
  await running(application);
  expect((await application.visit()).body).toContain('there');
}, 60_000);

test('deleted in the middle of a build: nothing stays', async () => {
  const application = await service.application({
    ...nodeApp('x'),
    'package.json': JSON.stringify({
      name: 'app',
      version: '1.0.0',
      scripts: { build: 'echo building; sleep 600', start: 'node server.js' },
    }),
  });
  const { id } = await application.ask();
  await waitFor('the build', async () => (await application.log(id)).includes('building'));
  expect((await service.call('DELETE', `/v2/applications/${application.id}`)).status).toBe(204);
  await waitFor(
    'no row',
    async () => (await service.sql('select 1 from applications where id = $1', [application.id])).length === 0,
  );
  expect(leftOvers(service.runtimeDir).filter((name) => name.includes(id) || name.includes(application.id))).toEqual(
    [],
  );
}, 60_000);

test('an app that ignores SIGTERM is ended after its grace time', async () => {
  const stubborn = await service.application(
    webCommand('node server.js', {
      'server.js':
        "process.on('SIGTERM', () => {}); require('http').createServer((q, a) => " +
        "a.end('stubborn')).listen(process.env.PORT, '127.0.0.1')",
    }),
  );
  await stubborn.deploy();
  await running(stubborn);
  await stubborn.post('/stop');
  await waitFor('stopped', async () => (await stubborn.get()).status === 'stopped');
}, 60_000);

test('what the platform does to an application is in its activity, with the instances', async () => {
  const application = await service.application(nodeApp('v1'));
  expect((await application.deploy()).status).toBe('active');
  await running(application);
  const [{ id }] = (await application.get('/instances')).data;
  await application.post('/stop');
  await waitFor('it is stopped', async () => (await application.get()).status === 'stopped');
  const actions = async (resource: string): Promise<string[]> =>
    (
      await service.sql<{ action: string }>('select action from activity where resource_id = $1 order by id', [
        resource,
      ])
    ).map(({ action }) => action);
  expect(await actions(id)).toEqual(['instance.running', 'instance.stopping']);
  // The first `stopped` is what was asked for.
  expect((await actions(application.id)).slice(-4)).toEqual(
    ['deploying', 'running', 'stopped', 'stopped'].map((event) => `application.${event}`),
  );
}, 60_000);
