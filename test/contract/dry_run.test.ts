// A dry run of every write: the answer is that of the write, and the database is the same before and after.
import type { Operation } from '../../contract/operations';
import { startService, type TestService } from '../support/service';
import { core, kindOfParam, operations } from '../support/world';
import { document } from '../support/contract/graphql_query';
import { openapiDocument } from '../../rest/openapi';

let service: TestService;
const ids: Record<string, string> = {};
const DRY = { headers: { 'Dry-Run': 'true' } };
const published = openapiDocument({ ...core, baseUrl: 'http://127.0.0.1', version: '0.0.0' });

beforeAll(async () => {
  service = await startService();
  const make = async (kind: string, path: string, body: object): Promise<void> => {
    const { status, body: row } = await service.call('POST', path, { body });
    expect(status).toBe(201);
    ids[kind] = row.id;
  };
  ids.project = (await service.newProject()).id;
  ids.project = service.project;
  const source = { type: 'git', repository_url: 'https://git.example.com/team/shop.git' };
  await make('volume', '/v2/volumes', { name: 'dry', size_gb: 1 });
  await make('application', '/v2/applications', { name: 'dry', source });
  await service.call('PUT', `/v2/applications/${ids.application}/env/DRY`, { body: { value: '1' } });
  ids.environment_variable = 'DRY';
});

afterAll(() => service.close());

/** Every row of every table, but what a read changes too, and what is written each minute: refusals, reports. */
async function contents(): Promise<Record<string, string>> {
  const tables = await service.sql<{ name: string }>(
    `select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'installation_reports'`,
  );
  const found: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await service.sql<{ hash: string }>(
      `select coalesce(md5(string_agg(rows.text, E'\\n' order by rows.text)), '') as hash
        from (select (to_jsonb(t) - 'last_used_at')::text as text from "${name}" t) rows
        where rows.text not like '%"request.refused"%'`,
    );
    found[name] = row?.hash ?? '';
  }
  return found;
}

function pathOf(operation: Operation): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    return ids[kindOfParam(operation, name)] ?? `vol_${'0'.repeat(26)}`;
  });
}

function bodyOf(operation: Operation): Record<string, unknown> | undefined {
  const example = published.paths[operation.path]?.[operation.method.toLowerCase()]?.requestBody?.content[
    'application/json'
  ].example as Record<string, unknown> | undefined;
  if (!example) return undefined;
  // Its references name nothing here.
  return Object.fromEntries(Object.entries(example).filter(([name]) => !/_ids?$|^mount_path$/.test(name)));
}

/** The same write over GraphQL: identifiers of the path, and the body as input. */
function variablesOf(operation: Operation): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const { name, argument } of operation.params)
    values[argument] = ids[kindOfParam(operation, name)] ?? `vol_${'0'.repeat(26)}`;
  const { body } = operation.field;
  if (body) values[body.argument] = bodyOf(operation) ?? {};
  return values;
}

const writes = operations.filter(({ method }) => method !== 'GET');
const succeeded: string[] = [];

test.each(writes.map((operation) => [operation.id, operation] as const))('%s', async (id, operation) => {
  const { method, field } = operation;
  const [path, body] = [pathOf(operation), bodyOf(operation)];
  const before = await contents();
  const dry = await service.call(method, path, { body, ...DRY });
  expect(await contents()).toEqual(before);
  const variables = variablesOf(operation);
  const graphql = await service.graphql(document(field, Object.keys(variables)), variables, DRY);
  expect(await contents()).toEqual(before);
  const code = graphql.errors?.[0]?.extensions.code;
  // A body that GraphQL's own types refuse runs nothing.
  if (code !== 'graphql_invalid') expect(code).toBe(dry.body?.code);
  if (field.errors.includes('dry_run_unsupported') && dry.body?.code === 'dry_run_unsupported') {
    expect([dry.status, dry.headers.get('dry-run')]).toEqual([422, null]);
    return;
  }
  // What ends the project of the other tests is not done in earnest.
  if (id === 'deleteProject') return;
  const real = await service.call(method, path, { body });
  expect([dry.status, dry.body?.code]).toEqual([real.status, real.body?.code]);
  expect(Object.keys(dry.body ?? {})).toEqual(Object.keys(real.body ?? {}));
  expect(dry.headers.get('dry-run')).toBe('true');
  if (dry.status < 300) succeeded.push(id);
});

test('enough of them would have succeeded for the comparison to mean something', () => {
  expect(succeeded.length).toBeGreaterThan(5);
});

test('every mutation of the dashboard rolls back, or refuses', async () => {
  const dashboard = [...core.table.fields.values()].filter(({ kind, session }) => kind === 'mutation' && session);
  for (const field of dashboard) {
    const variables = Object.fromEntries(
      field.definition.args.map(({ name }) => [name, name === field.body?.argument ? {} : `vol_${'0'.repeat(26)}`]),
    );
    const before = await contents();
    const { errors } = await service.graphql(document(field, Object.keys(variables)), variables, DRY);
    expect([field.name, errors?.length]).toEqual([field.name, expect.any(Number)]);
    expect([field.name, await contents()]).toEqual([field.name, before]);
  }
});

test('what is sent or checked at once refuses, and nothing goes out', async () => {
  const config = { url: 'https://hooks.example.com/' };
  const notifier = await service.call('POST', '/v2/notifiers', { body: { name: 'dry', type: 'webhook', config } });
  const uptime = { target: 'https://www.example.com/' };
  const observer = await service.call('POST', '/v2/observers', {
    body: { name: 'dry', type: 'uptime', enabled: false, uptime },
  });
  for (const path of [`/v2/notifiers/${notifier.body.id}/test`, `/v2/observers/${observer.body.id}/check`]) {
    const before = await contents();
    const { status, body } = await service.call('POST', path, DRY);
    expect([status, body.code]).toEqual([422, 'dry_run_unsupported']);
    expect(await contents()).toEqual(before);
  }
});

test('GraphQL mutations are rolled back by the same header', async () => {
  const field = core.table.fields.get('createVolume') as NonNullable<ReturnType<typeof core.table.fields.get>>;
  const before = await contents();
  const variables = { input: { name: 'never-there', size_gb: 1 } };
  const answer = await service.graphql(document(field, ['input']), variables, DRY);
  expect(answer.data.createVolume).toMatchObject({ name: 'never-there', status: 'provisioning' });
  expect(answer.headers.get('dry-run')).toBe('true');
  expect(await contents()).toEqual(before);
});

test('a dry run says what a role, a taken name and an old version would say', async () => {
  const viewer = await service.mintKey({ role: 'viewer' });
  const body = { name: 'dry-twin', size_gb: 1 };
  expect((await service.call('POST', '/v2/volumes', { key: viewer, body, ...DRY })).body.code).toBe(
    'role_not_permitted',
  );
  const made = await service.call('POST', '/v2/volumes', { body });
  expect((await service.call('POST', '/v2/volumes', { body, ...DRY })).body.code).toBe('name_taken');
  const path = `/v2/volumes/${made.body.id}`;
  const headers = { ...DRY.headers, 'If-Match': '"0"' };
  expect((await service.call('PATCH', path, { body: { name: 'dry-other' }, headers })).status).toBe(412);
});

test('it leaves no idempotency record, and its header takes true and false only', async () => {
  const body = { name: 'dry-key', size_gb: 1 };
  const headers = { ...DRY.headers, 'Idempotency-Key': 'dry-1' };
  expect((await service.call('POST', '/v2/volumes', { body, headers })).status).toBe(201);
  const again = await service.call('POST', '/v2/volumes', { body, headers: { 'Idempotency-Key': 'dry-1' } });
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, null]);
  const wrong = await service.call('POST', '/v2/volumes', { body, headers: { 'Dry-Run': 'maybe' } });
  expect([wrong.status, wrong.body.code]).toEqual([400, 'malformed_request']);
});
