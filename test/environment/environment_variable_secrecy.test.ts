// Values of variables stay secret, and in their project.
import { application, path, put, service, setUpVariables } from '../support/deployments/environment_variable_cases';

setUpVariables();

describe('secrecy', () => {
  it('needs env:read to read and env:write to write', async () => {
    await put('KEY', { value: 'v' });
    const reader = await service.mintKey({ scopes: ['read', 'write', 'env:write'] });
    expect((await service.call('GET', path, { key: reader })).body).toMatchObject({
      status: 403,
      code: 'insufficient_scope',
      required_scope: 'env:read',
    });
    expect((await service.call('PUT', `${path}/KEY`, { key: reader, body: { value: 'w' } })).status).toBe(200);
    const writer = await service.mintKey({ scopes: ['read', 'write', 'env:read'] });
    expect((await service.call('PUT', `${path}/KEY`, { key: writer, body: { value: 'x' } })).body).toMatchObject({
      required_scope: 'env:write',
    });
    expect((await service.call('DELETE', `${path}/KEY`, { key: writer })).body).toMatchObject({
      required_scope: 'env:write',
    });
    expect((await service.call('GET', path, { key: writer })).body.data[0].value).toBe('w');
  });

  it('keeps the value out of every table, in plain and in base64', async () => {
    const value = 'correct-horse-battery-staple';
    await put('SECRET', { value });
    await put('TWIN', { value });
    await put('SECRET', { value });
    const tables = await service.sql<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public'`,
    );
    expect(tables.map(({ name }) => name)).toContain('environment_variables');
    for (const { name } of tables) {
      const text = JSON.stringify(await service.sql(`select t::text from "${name}" t`));
      expect([
        name,
        text.includes(value),
        text.includes(Buffer.from(value).toString('base64').replace(/=+$/, '')),
      ]).toEqual([name, false, false]);
    }
    const rows = await service.sql<{ value: string; value_hash: string }>(
      'select value, value_hash from environment_variables where application_id = $1',
      [application],
    );
    expect(rows.map((row) => row.value.startsWith('v1.'))).toEqual([true, true]);
    expect(new Set(rows.flatMap((row) => [row.value, row.value_hash])).size).toBe(4);
    const activity = await service.sql(
      `select resource_name, changed_fields from activity where action = 'environment_variable.set'
        and resource_name = 'SECRET' order by id desc limit 1`,
    );
    expect(activity).toEqual([{ resource_name: 'SECRET', changed_fields: ['value'] }]);
  });

  it('does not open a value that was copied into another row', async () => {
    await put('ONE', { value: 'first' });
    await put('TWO', { value: 'second' });
    await service.sql(
      `update environment_variables set value = (select value from environment_variables
        where application_id = $1 and key = 'ONE') where application_id = $1 and key = 'TWO'`,
      [application],
    );
    const answer = await service.call('GET', path);
    expect([answer.status, answer.body.code]).toEqual([500, 'internal_error']);
    expect(answer.text).not.toMatch(/first|sealed|altered/);
  });

  it('does not repeat a refused value', async () => {
    const answer = await put('KEY', { value: `${'s3cr3t'.repeat(6000)}` });
    expect(answer.status).toBe(422);
    expect(answer.text).not.toContain('s3cr3t');
  });
});

describe('tenancy and GraphQL', () => {
  it('answers 404 for the application of another project', async () => {
    await put('KEY', { value: '' });
    const { id: project, key } = await service.newProject({ stranger: true });
    for (const [method, place] of [
      ['GET', path],
      ['PUT', `${path}/KEY`],
      ['DELETE', `${path}/KEY`],
    ] as const) {
      const answer = await service.call(method, place, {
        key,
        project,
        ...(method === 'PUT' && { body: { value: '' } }),
      });
      expect([method, answer.status]).toEqual([method, 404]);
    }
  });

  it('is the same on both faces', async () => {
    const fields = 'application_id key value value_hash available_at managed_by created_at updated_at';
    const set = await service.graphql(
      `mutation ($id: ID!) { setEnvironmentVariable(id: $id, key: "KEY",
        input: { value: "v", available_at: runtime }) { ${fields} } }`,
      { id: application },
    );
    expect((await service.call('GET', path)).body.data).toEqual([set.data.setEnvironmentVariable]);
    const list = await service.graphql(
      `query ($id: ID!) { listEnvironmentVariables(id: $id) { data { ${fields} } next_cursor } }`,
      { id: application },
    );
    expect(list.data.listEnvironmentVariables).toEqual((await service.call('GET', path)).body);
    const reserved = await service.graphql(
      'mutation ($id: ID!) { setEnvironmentVariable(id: $id, key: "PORT", input: { value: "1" }) { key } }',
      { id: application },
    );
    expect(reserved.errors?.[0].extensions.code).toBe('env_key_reserved');
    const deleted = await service.graphql('mutation ($id: ID!) { deleteEnvironmentVariable(id: $id, key: "KEY") }', {
      id: application,
    });
    expect(deleted.data).toEqual({ deleteEnvironmentVariable: true });
  });
});
