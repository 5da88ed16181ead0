// Fields of GraphQL about one resource find their project by its id, where the call names none.
import { startService, type TestService } from '../support/service';

let service: TestService;
let volume: { id: string };
const READ = 'query ($id: ID!) { getVolume(id: $id) { id project_id } }';
const RENAME = 'mutation ($id: ID!) { updateVolume(id: $id, input: {name: "renamed"}) { name } }';

beforeAll(async () => {
  service = await startService();
  volume = (await service.call('POST', '/v2/volumes', { body: { name: 'data', size_gb: 1, region: 'local' } })).body;
});
afterAll(() => service.close());

const codeOf = async (query: string, id: string, key?: string): Promise<string | null> => {
  const { errors } = await service.graphql(query, { id }, { project: null, ...(key && { key }) });
  return (errors?.[0].extensions.code as string | undefined) ?? null;
};

it('for keys of a person that may act in all projects', async () => {
  const { data } = await service.graphql(READ, { id: volume.id }, { project: null });
  expect(data.getVolume).toEqual({ id: volume.id, project_id: service.project });
  const { data: changed } = await service.graphql(RENAME, { id: volume.id }, { project: null });
  expect(changed.updateVolume).toEqual({ name: 'renamed' });
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${volume.id}`);
  expect(body.data[0]).toMatchObject({ action: 'volume.updated' });
});

it('in one document for resources of several projects', async () => {
  const other = await service.newProject();
  const made = await service.call('POST', '/v2/volumes', {
    body: { name: 'data', size_gb: 1, region: 'local' },
    project: other.id,
  });
  const both = 'query ($a: ID!, $b: ID!) { a: getVolume(id: $a) { project_id } b: getVolume(id: $b) { project_id } }';
  const { data } = await service.graphql(both, { a: volume.id, b: made.body.id }, { project: null });
  expect([data.a.project_id, data.b.project_id]).toEqual([service.project, other.id]);
});

it('not for a key that is restricted to projects, and not for a list', async () => {
  const restricted = await service.mintKey({ project_ids: [service.project] });
  expect(await codeOf(READ, volume.id, restricted)).toBe('project_header_missing');
  const { errors } = await service.graphql('{ listVolumes { next_cursor } }', {}, { project: null });
  expect(errors?.[0].extensions.code).toBe('project_header_missing');
});

it('says of a resource of others what it says of none', async () => {
  const stranger = await service.newProject({ stranger: true });
  const [row] = await service.sql(`update volumes set project_id = $1 where id = $2 returning id`, [
    stranger.id,
    volume.id,
  ]);
  expect(row).toEqual({ id: volume.id });
  for (const query of [READ, RENAME]) {
    expect(await codeOf(query, volume.id)).toBe('not_found');
    for (const id of [volume.id.replace(/..$/, '00'), 'vol_x', 'nothing', ''])
      expect([query, id, await codeOf(query, id)]).toEqual([query, id, 'not_found']);
  }
});

it('checks the scope before, and answers a named project as ever', async () => {
  const writer = await service.mintKey({ scopes: ['write'] });
  expect(await codeOf(READ, volume.id, writer)).toBe('insufficient_scope');
  const { errors } = await service.graphql(READ, { id: volume.id }, { project: 'prj_01h455vb4pex5vsknk084sn02q' });
  expect(errors?.[0].extensions.code).toBe('project_not_found');
});
