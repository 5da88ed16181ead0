// A project as one file: what a plan says is what an apply does, and nothing is done that no plan has said.
import { describeHost } from '../support/databases/databases';
import { startService, type TestService } from '../support/service';
import { shop } from '../support/stacks/shop';
import { briefly, stacksOf, type Stacks } from '../support/stacks/stack_calls';

let service: TestService;
beforeAll(async () => {
  service = await startService({ settings: { DESTROYING_CALLS_PER_MINUTE: '1000' } });
  await describeHost(service);
});
afterAll(() => service.close());

/** A project of its own. */
async function fresh(): Promise<Stacks & { project: string; key: string }> {
  const { id, key } = await service.newProject();
  return { ...stacksOf(service, id, { key, project: id }), project: id, key };
}

describe('a plan', () => {
  test('lists what would be made, in its order, with lines and the price, and makes nothing', async () => {
    const stacks = await fresh();
    const { file, bucket } = shop();
    const { status, body } = await stacks.plan(file);
    expect([status, body.refusals]).toEqual([200, []]);
    expect(briefly(body.changes)).toEqual([
      'create database main',
      `create bucket ${bucket}`,
      'create application shop',
      'update application_settings shop',
      'update process shop/web',
      'update process shop/web',
      'create process shop/worker',
      'create volume uploads',
      'create database_attachment shop/DATABASE',
      'create environment_variable shop/LOG_LEVEL',
      'create environment_variable shop/RETRIES',
      'create environment_variable shop/PRICE',
      'create environment_variable shop/BUILD_ONLY',
      'create schedule shop/nightly',
      'create domain shop/Shop.Example.com',
    ]);
    expect(body.changes[0]).toMatchObject({ operation_id: 'createDatabase', line: 3, danger: null, resource_id: null });
    expect(body.changes[4]).toMatchObject({ operation_id: 'updateProcess', line: 19 });
    expect(body.changes[5].fields).toContainEqual({ path: 'instances', from: '1', to: '2' });
    expect(body.missing_secrets).toEqual([{ application: 'shop', key: 'STRIPE_KEY', line: 26 }]);
    expect(Number(body.monthly_price.before)).toBe(0);
    expect(Number(body.monthly_price.after)).toBeGreaterThan(0);
    expect(body).toMatchObject({ confirm: [], requires_approval: false });
    expect(JSON.stringify(body.changes)).not.toContain('debug');
    for (const path of ['applications', 'databases', 'volumes', 'buckets'])
      expect((await service.call('GET', `/v2/projects/${stacks.project}/${path}`, stacks)).body.data).toEqual([]);
  });

  test('is applied as it is, and the second one is empty', async () => {
    const stacks = await fresh();
    const { file } = shop();
    const plan = await stacks.plan(file);
    const applied = await stacks.apply(file, plan);
    expect([applied.status, applied.body.changes?.length]).toEqual([202, 15]);
    const withoutIds = (changes: object[]): object[] => changes.map((one) => ({ ...one, resource_id: null }));
    const listed = applied.body.changes as Record<string, unknown>[];
    expect(withoutIds(listed)).toEqual(withoutIds(plan.body.changes));
    expect(listed[0]?.resource_id).toMatch(/^db_/);
    const again = await stacks.plan(file);
    expect([again.body.changes, again.body.refusals]).toEqual([[], []]);
    const application = listed.find(({ type }) => type === 'application')?.resource_id as string;
    const { body: variables } = await service.call('GET', `/v2/applications/${application}/env?limit=100`, stacks);
    const values = Object.fromEntries(
      variables.data.map((one: { key: string; value: string }) => [one.key, one.value]),
    );
    expect(values).toMatchObject({ RETRIES: '010', PRICE: '${not a reference}', BUILD_ONLY: 'yes' });
    expect(values.DATABASE_URL).toMatch(/^postgres/);
    const { body: activity } = await service.call('GET', `/v2/projects/${stacks.project}/activity?limit=100`, stacks);
    const actions = activity.data.map((one: { action: string }) => one.action);
    for (const action of ['stack.applied', 'database.created', 'process.scaled', 'schedule.created', 'domain.added'])
      expect(actions).toContain(action);
    expect(actions).not.toContain('stack.planned');
  });

  test('changes what the file says alone, and what is changed by hand comes back', async () => {
    const stacks = await fresh();
    await stacks.make('applications: { shop: { description: one, processes: { web: { instances: 2 } } } }');
    const { body } = await service.call('GET', `/v2/projects/${stacks.project}/applications`, stacks);
    const { id } = body.data[0];
    await service.call('PATCH', `/v2/applications/${id}`, { ...stacks, body: { description: 'by hand' } });
    await service.call('PUT', `/v2/applications/${id}/env/OWN`, { ...stacks, body: { value: '1' } });
    const changes = await stacks.make('applications: { shop: { description: one } }');
    expect(changes).toMatchObject([
      { action: 'update', name: 'shop', fields: [{ path: 'description', from: '"by hand"', to: '"one"' }] },
    ]);
  });

  test('says what would be refused by the rules of the operations, each with its line', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { kept: { size_gb: 5 } }');
    const file = [
      'volumes:', // 1
      '  kept: { size_gb: 1 }',
      '  big: { size_gb: 100000 }',
      'databases:',
      '  main:',
      '    engine: oracle',
      'applications:', // 7
      '  shop:',
      '    application_type: huge',
      '    processes: { web: { instances: 2 } }',
      '  api:',
      '    variables:',
      '      PORT: 80', // 13
      '      DATABASE_URL: ${database.main.url}',
      '    schedules:',
      '      nightly: { cron: every day, command: report }',
    ].join('\n');
    const { body } = await stacks.plan(file);
    const found = body.refusals.map((one: Record<string, unknown>) => [one.line, one.path, one.code]);
    expect(found).toEqual([
      [6, 'databases.main.engine', 'reference_not_found'],
      [9, 'applications.shop.application_type', 'reference_not_found'],
      [10, 'applications.shop.processes.web', 'reference_not_found'],
      [2, 'volumes.kept', 'volume_size_must_increase'],
      [3, 'volumes.big', 'volume_size_out_of_range'],
      [14, 'applications.api.variables.DATABASE_URL', 'reference_not_found'],
      [13, 'applications.api.variables.PORT', 'env_key_reserved'],
      [16, 'applications.api.schedules.nightly.cron', 'validation_failed'],
    ]);
    expect(body.plan_token).toBeNull();
    expect(briefly(body.changes)).toEqual(['create application api']);
  });

  test('refuses what cannot be changed once it exists', async () => {
    const stacks = await fresh();
    await stacks.make('databases: { main: { engine: postgresql, database_name: one } }');
    const { body } = await stacks.plan('databases:\n  main:\n    engine: postgresql\n    database_name: two\n');
    expect(body.refusals).toMatchObject([{ line: 4, path: 'databases.main.database_name', code: 'validation_failed' }]);
  });

  test('upgrades a database to a newer version, and refuses an older one', async () => {
    const stacks = await fresh();
    await stacks.make('databases: { main: { engine: postgresql, engine_version: 16 } }');
    await service.sql(`update databases set status = 'available' where project_id = $1`, [stacks.project]);
    const file = 'databases: { main: { engine: postgresql, engine_version: 17 } }';
    const plan = await stacks.plan(file);
    expect([plan.body.refusals, plan.body.changes]).toMatchObject([
      [],
      [{ operation_id: 'upgradeDatabase', fields: [{ path: 'engine_version', from: '"16"', to: '"17"' }] }],
    ]);
    expect((await stacks.apply(file, plan)).status).toBe(202);
    const { body } = await service.call('GET', `/v2/projects/${stacks.project}/databases`, stacks);
    expect(body.data[0].status).toBe('upgrading');
    const older = await stacks.plan('databases: { main: { engine: postgresql, engine_version: 15 } }');
    expect(older.body.refusals).toMatchObject([{ operation_id: 'upgradeDatabase' }]);
  });

  test('takes the values of an environment as a merge patch', async () => {
    const stacks = await fresh();
    const file = `
applications:
  shop: { processes: { web: { instances: 1 } }, variables: { LOG_LEVEL: info, DEBUG: 'no' } }
environments:
  staging:
    applications: { shop: { variables: { LOG_LEVEL: debug, DEBUG: null }, processes: { web: { instances: 0 } } } }
`;
    const { body } = await stacks.plan(file, { environment: 'staging' });
    expect(briefly(body.changes)).toEqual([
      'create application shop',
      'update process shop/web',
      'create environment_variable shop/LOG_LEVEL',
    ]);
    expect((await stacks.plan(file, { environment: 'none' })).status).toBe(422);
    // `production:` and nothing below it says that nothing differs, not that nothing is there.
    const bare = `${file}  production:\n`;
    await stacks.make(file);
    expect((await stacks.plan(bare, { environment: 'production', prune: true })).body.changes).toEqual([]);
    const mistaken = await stacks.plan(file.replace('LOG_LEVEL: debug', 'LOG_LEVEL: { valeu: debug }'));
    expect([mistaken.status, mistaken.body.errors[0].detail]).toEqual([422, expect.stringContaining('line 6')]);
  });
});

describe('groups of variables', () => {
  const FILE = `
variable_groups:
  common: { LOG_LEVEL: info, REGION: eu, SENTRY: { secret: true }, DATABASE_URL: '\${database.main.url}' }
  loud: { LOG_LEVEL: debug }
databases: { main: { engine: postgresql } }
applications:
  shop: { variable_groups: [common], variables: { REGION: us } }
  api: { variable_groups: [common, loud] }
environments:
  staging: { variable_groups: { common: { LOG_LEVEL: trace } } }
`;
  const valuesOf = async ({ project, key }: { project: string; key: string }): Promise<Record<string, string>> => {
    const rows = await service.call('GET', `/v2/projects/${project}/applications`, { key, project });
    const found: Record<string, string> = {};
    for (const { id, name } of rows.body.data) {
      const { body } = await service.call('GET', `/v2/applications/${id}/env?limit=100`, { key, project });
      for (const one of body.data) found[`${name} ${one.key}`] = one.value;
    }
    return found;
  };

  test('are at each application that names them: later ones win, and own variables over all', async () => {
    const stacks = await fresh();
    const plan = await stacks.plan(FILE);
    expect(plan.body.missing_secrets).toEqual([
      { application: 'shop', key: 'SENTRY', line: 3 },
      { application: 'api', key: 'SENTRY', line: 3 },
    ]);
    expect((await stacks.apply(FILE, plan)).status).toBe(202);
    expect(await valuesOf(stacks)).toMatchObject({
      ...{ 'shop LOG_LEVEL': 'info', 'shop REGION': 'us', 'api LOG_LEVEL': 'debug', 'api REGION': 'eu' },
      ...{ 'shop DATABASE_URL': expect.stringMatching(/^postgres/), 'api DATABASE_URL': expect.any(String) },
    });
    expect((await stacks.plan(FILE)).body.changes).toEqual([]);
    const changed = await stacks.plan(FILE.replace('REGION: eu', 'REGION: ap'));
    expect(briefly(changed.body.changes)).toEqual(['update environment_variable api/REGION']);
    const less = FILE.replace('REGION: eu, ', '');
    await stacks.make(less, { prune: true });
    expect(Object.keys(await valuesOf(stacks))).not.toContain('api REGION');
  });

  test('have other values in an environment', async () => {
    const stacks = await fresh();
    const plan = await stacks.plan(FILE, { environment: 'staging' });
    expect((await stacks.apply(FILE, plan)).status).toBe(202);
    expect(await valuesOf(stacks)).toMatchObject({ 'shop LOG_LEVEL': 'trace', 'api LOG_LEVEL': 'debug' });
  });
});

describe('the project that a file names', () => {
  test('is the one that it is for, by its name or id, and an environment has one of its own', async () => {
    const [production, staging] = [await fresh(), await fresh()];
    const nameOf = async ({ project, key }: { project: string; key: string }): Promise<string> =>
      (await service.call('GET', `/v2/projects/${project}`, { key, project })).body.name;
    const file = `project: ${production.project}
volumes: { uploads: { size_gb: 1 } }
environments: { staging: { project: ${staging.project} }, other: {} }
`;
    const answers = async (stacks: Stacks, environment?: string): Promise<[number, string | undefined]> => {
      const { status, body } = await stacks.plan(file, environment === undefined ? {} : { environment });
      return [status, body.errors?.[0].detail];
    };
    expect(await answers(production)).toEqual([200, undefined]);
    expect(await answers(staging, 'staging')).toEqual([200, undefined]);
    expect(await answers(staging)).toEqual([422, expect.stringContaining(`line 1: names the project`)]);
    expect(await answers(production, 'staging')).toEqual([422, expect.stringContaining('line 3')]);
    expect(await answers(production, 'other')).toEqual([422, expect.stringContaining('a `project` of its own')]);
    expect(await answers(staging, 'other')).toEqual([200, undefined]);
    const named = `project: ${JSON.stringify(await nameOf(production))}\nvolumes: { uploads: { size_gb: 1 } }\n`;
    expect((await production.plan(named)).status).toBe(200);
  });
});

describe('a token', () => {
  test('holds for its file, its caller and its project alone', async () => {
    const [stacks, others] = [await fresh(), await fresh()];
    const file = 'volumes: { uploads: { size_gb: 1 } }';
    const plan = await stacks.plan(file);
    const changed = await stacks.apply(`${file} `, plan);
    expect([changed.status, changed.body.code]).toEqual([409, 'plan_outdated']);
    const foreign = await others.apply(file, plan);
    expect([foreign.status, foreign.body.errors[0].field]).toEqual([422, 'plan_token']);
    const other = await stacks.apply(file, plan, { key: service.key });
    expect([other.status, other.body.errors[0].field]).toEqual([422, 'plan_token']);
    expect((await stacks.apply(file, plan)).status).toBe(202);
  });

  test('ends when the world moves, which the answer names', async () => {
    const stacks = await fresh();
    const file = 'volumes: { uploads: { size_gb: 2 } }\napplications: { shop: { description: one } }';
    await stacks.make(file);
    const next = file.replace('one', 'two');
    const plan = await stacks.plan(next);
    const { body } = await service.call('GET', `/v2/projects/${stacks.project}/applications`, stacks);
    await service.call('PATCH', `/v2/applications/${body.data[0].id}`, { ...stacks, body: { description: 'three' } });
    const refused = await stacks.apply(next, plan);
    expect([refused.status, refused.body.code, refused.body.moved]).toEqual([
      409,
      'plan_outdated',
      ['application shop'],
    ]);
    const made = await stacks.plan('volumes: { new-one: { size_gb: 1 } }');
    await service.call('POST', `/v2/projects/${stacks.project}/volumes`, {
      ...stacks,
      body: { name: 'new-one', size_gb: 1 },
    });
    const there = await stacks.apply('volumes: { new-one: { size_gb: 1 } }', made);
    expect([there.status, there.body.moved]).toEqual([409, ['volume new-one']]);
  });

  test('of what is not in the file changes nothing, unless it is pruned', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { uploads: { size_gb: 1 }, other-one: { size_gb: 1 } }');
    const file = 'volumes: { uploads: { size_gb: 2 } }';
    const [plan, pruning] = [await stacks.plan(file), await stacks.plan(file, { prune: true })];
    const { body } = await service.call('GET', `/v2/projects/${stacks.project}/volumes?name=other-one`, stacks);
    await service.call('PATCH', `/v2/volumes/${body.data[0].id}`, { ...stacks, body: { backup_retention_days: 9 } });
    const refused = await stacks.apply(file, pruning, { confirm: ['other-one'] });
    expect([refused.status, refused.body.moved]).toEqual([409, ['volume other-one']]);
    expect((await stacks.apply(file, plan)).status).toBe(202);
  });

  test('is applied once by two at the same time', async () => {
    const stacks = await fresh();
    const file = 'volumes: { uploads: { size_gb: 1 } }\napplications: { shop: {} }';
    const plan = await stacks.plan(file);
    const answers = await Promise.all([1, 2, 3].map(() => stacks.apply(file, plan)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    const { body } = await service.call('GET', `/v2/projects/${stacks.project}/volumes`, stacks);
    expect(body.data).toHaveLength(1);
  });

  test('is answered again with the same Idempotency-Key', async () => {
    const stacks = await fresh();
    const file = 'applications: { shop: {} }';
    const plan = await stacks.plan(file);
    const headers = { 'Idempotency-Key': 'apply 1' };
    const [first, second] = [await stacks.apply(file, plan, { headers }), await stacks.apply(file, plan, { headers })];
    expect([first.status, second.status, second.body]).toEqual([202, 202, first.body]);
  });
});
