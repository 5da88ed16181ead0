// What an answer reveals and what an input runs is marked in the SDL. Whoever adds a kind cannot forget the marks: they
// are looked for here by the names of fields, and each operation is held to the scope that they demand.
import { getDirective } from '@graphql-tools/utils';
import { getNamedType, isInputObjectType, isLeafType, isObjectType, type GraphQLNamedType } from 'graphql';
import { authorisationOf } from '../../contract/authorisation';
import { readOperations } from '../../contract/operations';
import { secretsOf } from '../../contract/secret_answers';
import { buildSchema } from 'graphql';
import { startService, type TestService } from '../support/service';
import { core } from '../support/world';

const fields = [...core.table.fields.values()];
const types = Object.values(core.schema.getTypeMap()).filter(({ name }) => !name.startsWith('__'));

/** Names of what must not be read by everybody. */
const SECRET = /password$|secret|token$|credential|connection_string|private_|(?:^|_)keys?$|^codes$|^value$/;
/** Fields that are named alike, and why they are no secrets. */
const NO_SECRETS: Record<string, string> = {
  'StackPlan.pauses_key': 'whether it would be paused',
  'Activity.key_id': 'an id',
  'ApprovalArgument.value': 'masked where it looks like one',
  'BucketObject.key': 'the name of an object',
  'BucketPolicyCondition.key': 'what a condition is about',
  'CheckResult.value': 'what was measured',
  'DatabaseMaskRule.value': 'what the copies have in place of a value',
  'DnsInstruction.value': 'a record that is published',
  'DnsRecord.value': 'a record that is published',
  'DeployKey.public_key': 'public',
  'DnsKey.public_key': 'published',
  'EnvironmentVariable.key': 'the name of a variable',
  'InstallationUser.keys': 'how many there are',
  'LoginMethods.password': 'whether it can be used',
  'MetricPoint.value': 'what was measured',
  'MetricLabel.value': 'the name of a series',
  'StackPlan.plan_token': 'sealed, and of use to its caller alone, with their own key',
  'StackSecret.key': 'the name of a variable',
  'NotifierConfig.secret': 'masked',
  'NotifierConfig.routing_key': 'masked',
  'NotifierConfig.token': 'masked',
  'NotifierHeader.value': 'masked',
  'ObserverHeader.value': 'masked',
  'PresetVariable.key': 'the name of a variable',
  'SetupRecord.value': 'a record that is published',
  'SetupSetting.value': 'an address, a port or a name',
};
/** Names of what is run. */
const CODE = /^source$|^preset$|^template$|^image$|^builder$|^branch$|repository_url|root_directory/;
const RUNS = new RegExp(`command|(?:^|_)script|dockerfile|buildpack|${CODE.source}`);

function fieldsOf(type: GraphQLNamedType): string[] {
  if (!isObjectType(type) || /^(?:Query|Mutation|Subscription)$/.test(type.name)) return [];
  return Object.values(type.getFields())
    .filter((field) => isLeafType(getNamedType(field.type)) && !getDirective(core.schema, field, 'secret'))
    .map((field) => `${type.name}.${field.name}`);
}

test('every field of an answer that is named like a secret is marked, or known to be none', () => {
  const suspects = types.flatMap(fieldsOf).filter((name) => SECRET.test(name.split('.')[1] as string));
  expect(suspects.filter((name) => !NO_SECRETS[name])).toEqual([]);
});

test('every operation whose answer holds a secret needs env:read, or a session', () => {
  const revealing = fields.filter(({ name, definition }) =>
    secretsOf(core.schema, getNamedType(definition.type)).some(
      ({ mark }) => !mark.sentTo.includes(name) && (mark.answeredBy?.includes(name) ?? true),
    ),
  );
  expect(revealing.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['getDatabaseCredentials', 'createDatabaseUser', 'listEnvironmentVariables']),
  );
  const open = revealing.filter(
    ({ session, scope, alsoScopes }) => !session && ![scope, ...alsoScopes].includes('env:read'),
  );
  expect(open.map(({ name }) => name)).toEqual([]);
  // A viewer of the project reads none of them either.
  const read = revealing.filter(({ session }) => !session).map((field) => authorisationOf(field).role);
  expect(new Set(read)).toEqual(new Set(['developer']));
});

test('a relation to what holds a secret needs env:read', () => {
  const relations = types.filter(isObjectType).flatMap((type) =>
    Object.values(type.getFields())
      .map((field) => ({ field, mark: getDirective(core.schema, field, 'graphqlOnly')?.[0] }))
      .filter(({ mark }) => mark?.scope)
      .filter(({ field }) => secretsOf(core.schema, getNamedType(field.type)).some(({ mark }) => !mark.answeredBy))
      .map(({ field, mark }) => [`${type.name}.${field.name}`, mark?.scope]),
  );
  expect(relations.length).toBeGreaterThan(0);
  expect(relations.filter(([, scope]) => scope !== 'env:read')).toEqual([]);
});

test('a schema whose operation answers a secret to everybody who reads is refused at the start', () => {
  const schema = buildSchema(`
    directive @secret(answeredBy: [String!], sentTo: [String!]! = []) on FIELD_DEFINITION
    directive @graphqlOnly(scope: String) on FIELD_DEFINITION
    type Box { note: String, inner: Inner }
    type Inner { password: String @secret }
    type Query { "Gets a box." getBox: Box @graphqlOnly }`);
  expect(() => readOperations(schema)).toThrow('getBox: answers the secret Inner.password');
});

// Rows, and SQL that runs as the owner of the database: who has its password may do as much.
const DATA = 'createDatabaseImport: source';

test('every input that is named like something that runs needs the scope deploy', () => {
  const open = fields
    .filter(({ body, kind, session }) => body && kind === 'mutation' && !session)
    .flatMap((field) => {
      const { scopes, runs } = authorisationOf(field);
      if (scopes.includes('deploy')) return [];
      return inputsOf(field.body?.type as GraphQLNamedType)
        .filter((path) => RUNS.test(path.slice(path.lastIndexOf('.') + 1)))
        .filter((path) => !runs.some((marked) => path === marked || path.startsWith(`${marked}.`)))
        .map((path) => `${field.name}: ${path}`)
        .filter((path) => path !== DATA);
    });
  expect(open).toEqual([]);
});

function inputsOf(type: GraphQLNamedType, above = ''): string[] {
  if (!isInputObjectType(type)) return [];
  return Object.values(type.getFields()).flatMap((field) => [
    `${above}${field.name}`,
    ...inputsOf(getNamedType(field.type), `${above}${field.name}.`),
  ]);
}

describe('a key that may write but not deploy', () => {
  let service: TestService;
  let application: string;
  let writer: string;
  const source = { type: 'git', repository_url: 'https://git.example.com/team/shop.git' };

  beforeAll(async () => {
    service = await startService();
    writer = await service.mintKey({ scopes: ['read', 'write'] });
    const { body } = await service.call('POST', '/v2/applications', { body: { name: 'shop', source } });
    application = body.id;
  });

  afterAll(() => service.close());

  const refused = async (method: string, path: string, body: object, field: string): Promise<void> => {
    const answer = await service.call(method, path, { key: writer, body });
    expect([path, answer.status, answer.body.code, answer.body.required_scope]).toEqual([
      path,
      403,
      'insufficient_scope',
      'deploy',
    ]);
    expect(answer.body.detail).toContain(`\`${field}\``);
  };

  it('sends nothing that runs, whatever the operation', async () => {
    const path = `/v2/applications/${application}`;
    await refused('POST', '/v2/applications', { name: 'own', source }, 'source');
    await refused('POST', '/v2/applications', { name: 'own', preset: 'node-web' }, 'preset');
    await refused('PATCH', path, { source: { branch: 'mine' } }, 'source');
    await refused('PATCH', `${path}/settings`, { build: { build_command: 'make' } }, 'build.build_command');
    await refused('PATCH', `${path}/settings`, { run: { release_command: 'make' } }, 'run.release_command');
    await refused('POST', `${path}/processes`, { type: 'worker', command: 'make' }, 'command');
    await refused('PATCH', `${path}/auto_deploy`, { enabled: true }, 'enabled');
    const over = await service.graphql(
      `mutation ($id: ID!, $input: UpdateApplicationSettingsInput!) {
        updateApplicationSettings(id: $id, input: $input) { application_id } }`,
      { id: application, input: { build: { build_command: 'make' } } },
      { key: writer },
    );
    expect(over.errors?.[0]?.extensions).toMatchObject({ code: 'insufficient_scope', required_scope: 'deploy' });
    expect((await service.call('GET', `${path}/settings`)).body.build.build_command).toBeNull();
  });

  it('changes the rest, and takes back what runs', async () => {
    const path = `/v2/applications/${application}`;
    const write = (body: object, below = ''): Promise<{ status: number }> =>
      service.call('PATCH', path + below, { key: writer, body });
    expect((await write({ description: 'The shop' })).status).toBe(200);
    expect((await write({ run: { shutdown_grace_seconds: 5 } }, '/settings')).status).toBe(200);
    expect((await write({ build: { build_command: null } }, '/settings')).status).toBe(200);
    expect((await write({ enabled: false }, '/auto_deploy')).status).toBe(200);
    const empty = await service.call('POST', '/v2/applications', { key: writer, body: { name: 'empty' } });
    expect(empty.status).toBe(201);
  });

  it('sends it with the scope deploy beside', async () => {
    const key = await service.mintKey({ scopes: ['read', 'write', 'deploy'] });
    const body = { build: { build_command: 'make' } };
    const answer = await service.call('PATCH', `/v2/applications/${application}/settings`, { key, body });
    expect([answer.status, answer.body.build.build_command]).toEqual([200, 'make']);
  });
});
