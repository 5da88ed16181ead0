// Names of resources by their ids: of the project alone, of what is still there, for whoever may read it.
import { deployed } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const NAMES = `query ($id: ID!, $ids: [ID!]!) {
  getProject(id: $id) { names(ids: $ids) { id type name parent { id type name } } }
}`;
const namesOf = async (id: string, ids: string[], key = service.key) => {
  const { data, errors } = await service.graphql(NAMES, { id, ids }, { key, project: null });
  expect(errors).toBeUndefined();
  return data.getProject.names;
};
const created = async (kind: string, body: object): Promise<string> =>
  (await service.call('POST', `/v2/${kind}`, { body })).body.id;

test('a resource has its name, and one without a name that of what it belongs to', async () => {
  const application = await deployed(service, await created('applications', { name: 'shop', preset: 'node-web' }));
  const volume = await created('volumes', { name: 'uploads', size_gb: 1 });
  const names = await namesOf(service.project, [volume, application.deployment, application.id, volume, 'vol_x', '']);
  const shop = { id: application.id, type: 'application', name: 'shop' };
  expect(names).toEqual([
    { id: volume, type: 'volume', name: 'uploads', parent: null },
    { id: application.deployment, type: 'deployment', name: '#1', parent: shop },
    { ...shop, parent: null },
  ]);
});

test('neither another project nor what was deleted is named, and secrets of a project are not', async () => {
  const volume = await created('volumes', { name: 'gone', size_gb: 1 });
  const stranger = await service.newProject({ stranger: true });
  expect(await namesOf(stranger.id, [volume, service.project], stranger.key)).toEqual([]);
  await service.sql(`update volumes set status = 'available' where id = $1`, [volume]);
  expect((await service.call('DELETE', `/v2/volumes/${volume}`)).status).toBe(204);
  expect(await namesOf(service.project, [volume])).toEqual([]);
});

test('after the first hundred, ids are left out', async () => {
  const volume = await created('volumes', { name: 'last', size_gb: 1 });
  const others = Array.from({ length: 100 }, (_, index) => `vol_${String(index).padStart(26, '0')}`);
  expect(await namesOf(service.project, [...others, volume])).toEqual([]);
  expect(await namesOf(service.project, [volume, ...others])).toHaveLength(1);
});

test('a run says who created it, and a run of a schedule nobody', async () => {
  const made = await created('applications', { name: 'runs', preset: 'node-web' });
  const { id } = await deployed(service, made);
  const run = await service.call('POST', `/v2/applications/${id}/runs`, { body: { command: 'true' } });
  expect([run.status, 'created_by' in run.body]).toEqual([201, false]);
  const query = `query ($id: ID!) { listRuns(id: $id) { data { id created_by { name type } } } }`;
  const answer = await service.graphql(query, { id });
  expect(answer.data.listRuns.data).toEqual([
    { id: run.body.id, created_by: expect.objectContaining({ name: 'Owner' }) },
  ]);
  await service.sql(`delete from activity where resource_id = $1`, [run.body.id]);
  const later = await service.graphql(query, { id });
  expect(later.data.listRuns.data).toEqual([{ id: run.body.id, created_by: null }]);
});
