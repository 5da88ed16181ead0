// Instances as a list (docs/contract/resources.md §3.3): read only, filtered, each by its application.
import { mintId } from '../../core/ids';
import { deployed, instanceOf, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;
let preview: string;
const ids: Record<string, string> = {};

beforeAll(async () => {
  service = await startService();
  const { body } = await service.call('POST', '/v2/applications', { body: { name: 'shop' } });
  await service.call('POST', `/v2/applications/${body.id}/processes`, { body: { type: 'worker' } });
  application = await deployed(service, body.id);
  preview = mintId('pvw');
  await service.sql(
    `insert into previews (id, project_id, application_id, branch, hostname, created_by, created_at, updated_at)
      values ($1, $2, $3, 'feature', 'feature.localhost', '{}', now(), now())`,
    [preview, service.project, application.id],
  );
  ids.web = await instanceOf(service, application, 'web', {
    cpu_percent: 12.5,
    memory_mb: 84,
    started_at: '2026-01-31T09:30:00.000Z',
    restart_count: 2,
    port: 20001,
  });
  ids.starting = await instanceOf(service, application, 'web', {
    status: 'starting',
    status_reason: 'Waits for its health check.',
  });
  ids.worker = await instanceOf(service, application, 'worker', { status: 'crashed' });
  ids.preview = await instanceOf(service, application, 'web', { preview_id: preview });
});

afterAll(() => service.close());

const list = async (query = '', options = {}): Promise<string[]> => {
  const { status, body } = await service.call('GET', `/v2/applications/${application.id}/instances?${query}`, options);
  expect(status).toBe(200);
  return body.data.map(({ id }: { id: string }) => Object.keys(ids).find((name) => ids[name] === id));
};

it('shows everything that is promised, and nothing of the loop', async () => {
  const { body } = await service.call('GET', `/v2/applications/${application.id}/instances?status=running`);
  expect(body).toEqual({
    next_cursor: null,
    data: [
      {
        id: ids.web,
        project_id: service.project,
        application_id: application.id,
        process_id: application.processes.web,
        process_type: 'web',
        deployment_id: application.deployment,
        preview_id: null,
        status: 'running',
        status_reason: null,
        restart_count: 2,
        cpu_percent: 12.5,
        memory_mb: 84,
        started_at: '2026-01-31T09:30:00.000Z',
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    ],
  });
});

it('is about the application itself, unless a preview is named', async () => {
  expect(await list()).toEqual(['worker', 'starting', 'web']);
  expect(await list(`preview_id=${preview}`)).toEqual(['preview']);
  expect(await list(`preview_id=${mintId('pvw')}`)).toEqual([]);
});

it('filters by process type and status', async () => {
  expect(await list(`process_id=${application.processes.web}`)).toEqual(['starting', 'web']);
  expect(await list(`process_id=${application.processes.web}&preview_id=${preview}`)).toEqual(['preview']);
  expect(await list('status=crashed')).toEqual(['worker']);
  expect(await list('status=stopping')).toEqual([]);
  expect((await service.call('GET', `/v2/applications/${application.id}/instances?status=gone`)).body).toMatchObject({
    status: 400,
    code: 'invalid_query_parameter',
    parameter: 'status',
  });
});

it('pages in both directions, each cursor for its filters', async () => {
  const path = `/v2/applications/${application.id}/instances?sort=created_at&limit=2`;
  const first = (await service.call('GET', path)).body;
  const second = (await service.call('GET', `${path}&cursor=${first.next_cursor}`)).body;
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual([ids.web, ids.starting, ids.worker]);
  expect(second.next_cursor).toBeNull();
  expect((await service.call('GET', `${path}&preview_id=${preview}&cursor=${first.next_cursor}`)).body.code).toBe(
    'invalid_cursor',
  );
});

it('belongs to its project', async () => {
  const stranger = await service.newProject({ stranger: true });
  expect(
    (
      await service.call('GET', `/v2/applications/${application.id}/instances`, {
        key: stranger.key,
        project: stranger.id,
      })
    ).status,
  ).toBe(404);
  expect((await service.call('GET', `/v2/applications/${mintId('app')}/instances`)).status).toBe(404);
});

it('is a relation of its application, and leads to its process type', async () => {
  const { data, errors } = await service.graphql(
    `{ getApplication(id: "${application.id}") { instances(limit: 10) { id preview_id process { type } } } }`,
  );
  expect(errors).toBeUndefined();
  expect(data.getApplication.instances).toEqual([
    { id: ids.web, preview_id: null, process: { type: 'web' } },
    { id: ids.starting, preview_id: null, process: { type: 'web' } },
    { id: ids.worker, preview_id: null, process: { type: 'worker' } },
    { id: ids.preview, preview_id: preview, process: { type: 'web' } },
  ]);
});
