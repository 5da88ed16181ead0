// A person who is signed in reaches every operation of their projects over GraphQL, without a header: by an argument
// that names the project, or by the id of the resource.
import type { RootField } from '../../contract/operations';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { newBrowser, newUser, PASSWORD, browser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';
import { core, kindOfParam, openWorld, operations } from '../support/world';

let service: TestService;
let person: Browser;
let other: { id: string };

beforeAll(async () => {
  service = await startService({ settings: SAMPLE_SETTINGS });
  const known = await newBrowser(service, 'ada@example.com', 'owner');
  person = known;
  other = await service.newProject();
  await join(other.id, known.user.id, 'owner');
});
afterAll(() => service.close());

const join = (project: string, user: string, role: string): Promise<unknown> =>
  service.sql('insert into members (project_id, user_id, role) values ($1, $2, $3)', [project, user, role]);

const isOfProject = ({ global, session, scope }: RootField): boolean => !global && !session && scope !== 'none';

test('every field about a project takes its id, or that of a resource', () => {
  const silent = [...core.table.fields.values()].filter(
    (field) => isOfProject(field) && !field.projectArgument && !field.definition.args.some(({ name }) => name === 'id'),
  );
  expect(silent.map(({ name }) => name)).toEqual([]);
});

const reads = operations.filter(
  ({ field, method, path }) => isOfProject(field) && method === 'GET' && /^\/v2\/\w+\/\{id\}$/.test(path),
);
const kinds = new Map(reads.map((operation) => [kindOfParam(operation, 'id'), operation]));
kinds.delete('project');

test.each([...kinds].map(([kind, { field }]) => [kind, field.name] as const))(
  'the id of a resource of the kind %s says its project (%s)',
  async (kind, name) => {
    const id = await openWorld(service).id(kind);
    const { data, errors } = await person.run(`query ($id: ID!) { ${name}(id: $id) { __typename } }`, { id });
    expect([errors, Object.keys(data)]).toEqual([undefined, [name]]);
  },
);

const CREATE = {
  notifier: {
    create: `mutation ($project: ID, $input: CreateNotifierInput!) {
      made: createNotifier(project_id: $project, input: $input) { id project_id } }`,
    list: 'query ($project: ID) { list: listNotifiers(project_id: $project) { data { id project_id } } }',
    input: { name: 'On call', type: 'email', config: { addresses: ['ada@example.com'] } },
  },
  'robot account': {
    create: `mutation ($project: ID, $input: CreateRobotAccountInput!) {
      made: createRobotAccount(project_id: $project, input: $input) { id project_id } }`,
    list: 'query ($project: ID) { list: listRobotAccounts(project_id: $project) { data { id project_id } } }',
    input: { name: 'ci-builds', permissions: ['pull'] },
  },
};

describe.each(Object.entries(CREATE))('%s', (_, { create, list, input }) => {
  test('is made and listed in the project that is named, and in no other', async () => {
    for (const project of [service.project, other.id]) {
      const { made } = await person.data(create, { project, input });
      expect(made.project_id).toBe(project);
      const { list: found } = await person.data(list, { project });
      expect(found.data).toContainEqual(made);
      expect(new Set(found.data.map((row: { project_id: string }) => row.project_id))).toEqual(new Set([project]));
    }
  });

  test('needs the name of a project of the person, and the role in it', async () => {
    expect((await person.refused(list)).code).toBe('project_header_missing');
    const stranger = await service.newProject({ stranger: true });
    expect((await person.refused(list, { project: stranger.id })).code).toBe('project_not_found');
    expect((await person.refused(create, { project: stranger.id, input })).code).toBe('project_not_found');
    const { id, email } = await newUser(service, `viewer${Math.random()}@example.com`, 'viewer');
    await join(other.id, id, 'viewer');
    const viewer = browser(service);
    await viewer.logIn(email, PASSWORD);
    expect((await viewer.refused(create, { project: other.id, input })).code).toBe('role_not_permitted');
    const { list: found } = await viewer.data(list, { project: other.id });
    expect(found.data.length).toBeGreaterThan(0);
  });
});

test('a repository that is shared with a project is read by its members, who are no members of its owner', async () => {
  const id = await openWorld(service).fresh('shared_repository');
  await service.call('POST', `/v2/shared_repositories/${id}/projects`, { body: { project_id: other.id } });
  const member = await newBrowser(service, 'grace@example.com');
  await join(other.id, member.user.id, 'developer');
  const read = `query ($id: ID!, $project: ID) {
    getSharedRepository(id: $id, project_id: $project) { access_level }
    listSharedRepositoryProjects(id: $id, project_id: $project) { data { project_id } } }`;
  expect((await member.refused(read, { id })).code).toBe('not_found');
  expect((await member.refused(read, { id, project: service.project })).code).toBe('project_not_found');
  expect(await member.data(read, { id, project: other.id })).toEqual({
    getSharedRepository: { access_level: 'shared' },
    listSharedRepositoryProjects: { data: [{ project_id: other.id }] },
  });
  const verify = `mutation ($id: ID!, $project: ID) {
    verifySharedRepository(id: $id, project_id: $project) { access_level } }`;
  const { data, errors } = await member.run(verify, { id, project: other.id });
  // Whether its remote answers is the remote's affair.
  expect(data?.verifySharedRepository?.access_level ?? errors?.[0].extensions.code).toMatch(
    /^(shared|provider_error)$/,
  );
});
