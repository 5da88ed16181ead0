// Operations: listDeletedProjects, restoreDeletedProject.
// A deleted project: its keys stop, its owners list and restore it, and everything in it is as it was.
import { binCalls } from '../support/bin_calls';
import { startService, type Answer, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: TestService;
const bin = binCalls(() => service);
beforeAll(async () => {
  service = await startService({ worker: true, settings: { RETENTION_OF_DELETED_DAYS: '7' } });
});
afterAll(() => service.close());

const listed = async (options = {}): Promise<any[]> =>
  (await service.call('GET', '/v2/deleted_projects', options)).body.data;
const restore = (entry: any, options: object = {}): Promise<Answer> =>
  service.call('POST', `/v2/deleted_projects/${entry.id}/restore`, options);
async function deleted({ id }: { id: string }): Promise<any> {
  expect((await service.call('DELETE', `/v2/projects/${id}`, { project: id })).status).toBe(204);
  return (await listed()).find(({ project_id }) => project_id === id);
}
const get = ({ id }: { id: string }, options = {}): Promise<Answer> =>
  service.call('GET', `/v2/projects/${id}`, { project: id, ...options });
const statusWith = async (key: string, id: string): Promise<number> => (await get({ id }, { key })).status;

describe('a deleted project', () => {
  it('is gone with its keys, and is the same with them after it was restored', async () => {
    const { id } = await service.newProject();
    const project = { id, key: await service.mintKey({ kind: 'project', project_id: id }) };
    expect(await statusWith(project.key, id)).toBe(200);
    const before = (await get(project)).body;
    expect(before.deleted_retention_days).toBe(7);
    const volume = await service.call('POST', '/v2/volumes', { body: { name: 'data', size_gb: 1 }, project: id });
    await service.call('DELETE', `/v2/volumes/${volume.body.id}`, { project: id });
    const entry = await deleted(project);
    expect(entry).toMatchObject({ project_id: id, resource: { type: 'project', id, name: before.name } });
    expect([await statusWith(project.key, id), (await get(project)).status]).toEqual([401, 404]);
    expect((await service.call('GET', '/v2/projects?limit=100')).body.data.map((one: any) => one.id)).not.toContain(id);
    expect((await restore(entry)).body).toEqual({ resource: { type: 'project', id, name: before.name }, notes: [] });
    expect({ ...(await get(project)).body, updated_at: null }).toEqual({ ...before, updated_at: null });
    expect(await statusWith(project.key, id)).toBe(200);
    const kept = (await service.call('GET', `/v2/projects/${id}/bin`, { project: id })).body.data;
    expect(kept.map(({ resource }: any) => resource.id)).toEqual([volume.body.id]);
    const { body } = await service.call('GET', `/v2/projects/${id}/activity`, { project: id });
    expect(body.data[0]).toMatchObject({ action: 'deleted_resource.restored', resource: { type: 'project', id } });
    await service.call('POST', `/v2/bin/${kept[0].id}/restore`, { project: id });
    expect((await service.call('GET', `/v2/volumes/${volume.body.id}`, { project: id })).status).toBe(200);
  });

  it('is listed and restored by its owners alone', async () => {
    const project = await service.newProject();
    const viewer = await service.mintKey({ role: 'viewer' });
    const stranger = await service.newProject({ stranger: true });
    const restricted = await service.mintKey({ project_ids: [service.project] });
    const entry = await deleted(project);
    for (const key of [viewer, stranger.key, restricted]) {
      expect(await listed({ key, project: null }).then((all) => all?.length ?? 0)).toBe(0);
      expect((await restore(entry, { key })).status).not.toBe(200);
    }
    expect((await restore(entry, { body: { name: 'Shop again' } })).body.resource.name).toBe('Shop again');
    expect((await get(project)).body.name).toBe('Shop again');
  });

  it('is restored once by two who come at once, or purged', async () => {
    for (let round = 0; round < 3; round += 1) {
      const project = await service.newProject();
      const first = await deleted(project);
      expect(await bin.race(restore(first), restore(first))).toEqual([200, 404]);
      const second = await deleted(project);
      const [answer] = await Promise.all([restore(second), bin.expire(second)]);
      expect((await get(project)).status).toBe(answer.status === 200 ? 200 : 404);
    }
  });

  it('loses its keys and what is in its bin when its time is over', async () => {
    const { id } = await service.newProject();
    const project = { id, key: await service.mintKey({ kind: 'project', project_id: id }) };
    const volume = await service.call('POST', '/v2/volumes', { body: { name: 'data', size_gb: 1 }, project: id });
    await service.call('DELETE', `/v2/volumes/${volume.body.id}`, { project: id });
    const entry = await deleted(project);
    await bin.expire(entry);
    const left = async (): Promise<number> =>
      (await service.sql('select 1 from deleted_resources where project_id = $1', [id])).length;
    await waitFor('the entry of the project goes', async () => (await left()) < 2);
    await service.sql(`update schedules set next_at = now() where id = 'empty_bin'`);
    await waitFor(
      'its volume goes',
      async () => !(await service.sql('select 1 from volumes where id = $1', [volume.body.id])).length,
    );
    expect(await left()).toBe(0);
    expect(await listed()).toEqual([]);
    expect((await restore(entry)).status).toBe(404);
    expect(await statusWith(project.key, id)).toBe(401);
  });
});
