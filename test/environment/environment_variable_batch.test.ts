// Several variables at once, over GraphQL: all of them or none.
import { application, path, put, service, setUpVariables } from '../support/deployments/environment_variable_cases';

setUpVariables();

interface Sent {
  key: string;
  value: string;
  available_at?: string;
  expected_hash?: string;
}

const TEXT = `mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) {
  setEnvironmentVariables(id: $id, input: $input) { key value available_at }
}`;

function set(variables: Sent[], options: Parameters<typeof service.graphql>[2] = {}, id = application) {
  return service.graphql(TEXT, { id, input: { variables } }, options);
}

async function stored(): Promise<Record<string, string>> {
  const { body } = await service.call('GET', path);
  return Object.fromEntries(body.data.map(({ key, value }: Sent) => [key, value]));
}

test('creates and updates in one go, in the order sent', async () => {
  await put('OLD', { value: 'before', available_at: 'build' });
  const { data, errors } = await set([
    { key: 'NEW', value: 'one', available_at: 'runtime' },
    { key: 'OLD', value: 'after' },
  ]);
  expect(errors).toBeUndefined();
  expect(data.setEnvironmentVariables).toEqual([
    { key: 'NEW', value: 'one', available_at: 'runtime' },
    { key: 'OLD', value: 'after', available_at: 'build' },
  ]);
  expect(await stored()).toEqual({ NEW: 'one', OLD: 'after' });
});

test('reports all mistakes together, repeats no value, and writes nothing', async () => {
  const { errors } = await set([
    { key: 'FINE', value: 's3cr3t' },
    { key: '1BAD', value: 's3cr3t' },
    { key: 'FINE', value: 's3cr3t' },
    { key: 'LONG', value: 's3cr3t'.repeat(6000) },
  ]);
  expect(errors?.[0].extensions).toMatchObject({ status: 422, code: 'validation_failed' });
  const mistakes = errors?.[0].extensions.errors as { field: string; code: string }[];
  expect(mistakes.map(({ field, code }) => [field, code]).sort()).toEqual([
    ['variables.1.key', 'invalid_format'],
    ['variables.2.key', 'duplicate'],
    ['variables.3.value', 'too_long'],
  ]);
  expect(JSON.stringify(errors)).not.toContain('s3cr3t');
  expect((await set([])).errors?.[0].extensions.errors).toEqual([
    expect.objectContaining({ field: 'variables', code: 'too_few' }),
  ]);
  expect(await stored()).toEqual({});
});

test('refuses reserved and managed keys with their places, and writes nothing', async () => {
  await put('MANAGED', { value: 'theirs' });
  await service.sql(
    `update environment_variables set managed_by = 'att_01h455vb4pex5vsknk084sn02q' where application_id = $1`,
    [application],
  );
  const reserved = await set(['A', 'PORT', 'B', 'SVC_X'].map((key) => ({ key, value: '' })));
  expect(reserved.errors?.[0].extensions).toMatchObject({
    code: 'env_key_reserved',
    status: 422,
    keys: ['PORT', 'SVC_X'],
    fields: ['variables.1.key', 'variables.3.key'],
  });
  const managed = await set(['A', 'MANAGED'].map((key) => ({ key, value: 'mine' })));
  expect(managed.errors?.[0].extensions).toMatchObject({
    code: 'env_key_managed',
    status: 409,
    managed_by: 'att_01h455vb4pex5vsknk084sn02q',
    keys: ['MANAGED'],
    fields: ['variables.1.key'],
  });
  expect(await stored()).toEqual({ MANAGED: 'theirs' });
});

test('refuses variables that have changed since they were read, and names all of them', async () => {
  await set([{ key: 'READ', value: 'one' }]);
  const [{ value_hash }] = await service.sql(
    `select value_hash from environment_variables where application_id = $1 and key = 'READ'`,
    [application],
  );
  const refused = await set([
    { key: 'FREE', value: 'any' },
    { key: 'READ', value: 'two', expected_hash: '0'.repeat(64) },
    { key: 'GONE', value: 'three', expected_hash: value_hash },
  ]);
  expect(refused.errors?.[0].extensions).toMatchObject({
    ...{ code: 'precondition_failed', status: 412, keys: ['READ', 'GONE'] },
    fields: ['variables.1.key', 'variables.2.key'],
  });
  expect(await stored()).toMatchObject({ READ: 'one' });
  expect((await set([{ key: 'READ', value: 'two', expected_hash: '' }])).errors?.[0].extensions.code).toBe(
    'precondition_failed',
  );
  const kept = await set([
    { key: 'READ', value: 'two', expected_hash: value_hash },
    { key: 'NEW', value: 'four', expected_hash: '' },
  ]);
  expect(kept.errors).toBeUndefined();
  expect(await stored()).toMatchObject({ READ: 'two', NEW: 'four' });
});

test('stops at 500 variables, counting only new ones', async () => {
  await service.sql(
    `insert into environment_variables (id, project_id, application_id, key, value, value_hash, created_at, updated_at)
     select 'env_' || lpad((n + 1000)::text, 26, '0'), $1, $2, 'FILL_' || n, '', '', now(), now()
       from generate_series(1, 499) n`,
    [service.project, application],
  );
  const over = await set(['FILL_1', 'ONE', 'TWO'].map((key) => ({ key, value: 'x' })));
  expect(over.errors?.[0].extensions).toMatchObject({ code: 'quota_exceeded', used: 499, limit: 500 });
  const counted = await service.sql<{ count: number }>(
    `select count(*)::int as count from environment_variables where application_id = $1 and value <> ''`,
    [application],
  );
  expect(counted).toEqual([{ count: 0 }]);
  expect((await set(['FILL_1', 'ONE'].map((key) => ({ key, value: 'x' })))).errors).toBeUndefined();
});

test('personal and project keys may call it, with env:write; other projects do not see the application', async () => {
  for (const key of [await service.mintKey({ scopes: ['env:write'] }), await service.mintKey({ kind: 'project' })])
    expect((await set([{ key: 'A', value: '1' }], { key })).errors).toBeUndefined();
  const lacking = await set([{ key: 'A', value: '2' }], {
    key: await service.mintKey({ scopes: ['write', 'env:read'] }),
  });
  expect(lacking.errors?.[0].extensions).toMatchObject({ code: 'insufficient_scope', required_scope: 'env:write' });
  const other = await service.newProject({ stranger: true });
  const strange = await set([{ key: 'A', value: '3' }], { key: other.key, project: other.id });
  expect(strange.errors?.[0].extensions.code).toBe('not_found');
  expect(await stored()).toEqual({ A: '1' });
});

test('seals the values and leaves one activity entry of the application, with keys and no values', async () => {
  const value = 'correct-horse-battery-staple';
  await set([
    { key: 'FIRST', value },
    { key: 'SECOND', value },
  ]);
  const rows = await service.sql<{ value: string; value_hash: string }>(
    'select value, value_hash from environment_variables where application_id = $1',
    [application],
  );
  expect(rows.map((row) => row.value.startsWith('v1.'))).toEqual([true, true]);
  expect(new Set(rows.map((row) => row.value_hash)).size).toBe(2);
  const entries = await service.sql<object>('select * from activity where resource_id = $1 and action = $2', [
    application,
    'environment_variable.set',
  ]);
  expect(entries).toEqual([
    expect.objectContaining({ resource_type: 'application', changed_fields: ['FIRST', 'SECOND'] }),
  ]);
  expect(JSON.stringify(entries)).not.toContain(value);
});

test('a dry run answers as the write and changes nothing', async () => {
  const { data, errors } = await set([{ key: 'DRY', value: '1' }], { headers: { 'Dry-Run': 'true' } });
  expect([errors, data.setEnvironmentVariables[0].key]).toEqual([undefined, 'DRY']);
  expect(await stored()).toEqual({});
});
