// A session acts on resources with the role that the person has in each project.
import { startService, type TestService } from '../support/service';
import { newBrowser } from '../support/identity/browser';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const LIST = 'query ($project: ID) { listVolumes(project_id: $project) { data { id } } }';
const CREATE = `mutation ($project: ID, $name: String!) { createVolume(project_id: $project,
  input: { name: $name, size_gb: 1 }) { id project_id } }`;
const RENAME = 'mutation ($project: ID!) { updateProject(id: $project, input: { name: "Renamed" }) { name } }';

const expected = {
  owner: { list: 'done', create: 'done', rename: 'done' },
  developer: { list: 'done', create: 'done', rename: 'role_not_permitted' },
  viewer: { list: 'done', create: 'role_not_permitted', rename: 'role_not_permitted' },
  stranger: { list: 'project_not_found', create: 'project_not_found', rename: 'project_not_found' },
} as const;

test.each(Object.entries(expected))('%s', async (role, outcome) => {
  const one = await newBrowser(service, `a-${role}@example.com`, role === 'stranger' ? undefined : (role as 'owner'));
  const variables = { project: service.project, name: `by-${role}` };
  const result = async (query: string): Promise<string> =>
    (await one.run(query, variables)).errors?.[0].extensions.code ?? 'done';
  expect({ list: await result(LIST), create: await result(CREATE), rename: await result(RENAME) }).toEqual(outcome);
});

test('without a project a session is told to name one, and what it makes is audited as its person', async () => {
  const one = await newBrowser(service, 'audited@example.com', 'developer');
  expect((await one.refused(LIST)).code).toBe('project_header_missing');
  const { id } = (await one.data(CREATE, { project: service.project, name: 'audited' })).createVolume;
  const entries = await service.sql('select action, actor, key_id from activity where resource_id = $1', [id]);
  expect(entries).toEqual([
    { action: 'volume.created', actor: { type: 'user', id: one.user.id, name: 'Somebody' }, key_id: null },
  ]);
});

test('reading keeps within the rate budget of the account', async () => {
  const one = await newBrowser(service, 'counted@example.com', 'viewer');
  const { headers } = await one.run('{ viewer { user { id } } }');
  expect(Number(headers.get('ratelimit-remaining'))).toBeLessThan(Number(headers.get('ratelimit-limit')));
});

test('what a session is refused stands in the activity as its person, without a key', async () => {
  const one = await newBrowser(service, 'refused@example.com', 'viewer');
  expect((await one.refused(CREATE, { project: service.project, name: 'no-no' })).code).toBe('role_not_permitted');
  await service.platform.refusals.close();
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?actor_id=${one.user.id}`);
  expect(body.data).toEqual([
    expect.objectContaining({
      action: 'request.refused',
      key_id: null,
      resource: { type: 'session', id: expect.stringMatching(/^ses_/), name: 'role_not_permitted (1)' },
    }),
  ]);
});
