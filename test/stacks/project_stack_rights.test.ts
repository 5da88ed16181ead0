// A project as one file: what is deleted, the rights of the caller, and exports.
import { newBrowser } from '../support/identity/browser';
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

describe('deletions', () => {
  test('are made with prune alone, and of data with their names alone', async () => {
    const stacks = await fresh();
    const { file, bucket } = shop();
    await stacks.make(file);
    expect((await stacks.plan('{}')).body.changes).toEqual([]);
    const plan = await stacks.plan('{}', { prune: true });
    const names = ['main', bucket, 'uploads'];
    expect([plan.body.refusals, plan.body.confirm]).toEqual([[], names]);
    expect(briefly(plan.body.changes)).toEqual([
      'delete database_attachment shop/DATABASE',
      'delete application shop',
      'delete database main',
      `delete bucket ${bucket}`,
      'delete volume uploads',
    ]);
  });

  test('do not happen where a name is missing', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { one-more: { size_gb: 1 } }\napplications: { shop: { variables: { A: b } } }');
    const plan = await stacks.plan('applications: { shop: {} }', { prune: true });
    expect(briefly(plan.body.changes)).toEqual(['delete environment_variable shop/A', 'delete volume one-more']);
    const refused = await stacks.apply('applications: { shop: {} }', plan, { confirm: ['one'] });
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      [expect.objectContaining({ field: 'confirm', detail: expect.stringContaining('one-more') })],
    ]);
    const applied = await stacks.apply('applications: { shop: {} }', plan, { confirm: ['one-more'] });
    expect(applied.status).toBe(202);
    expect((await stacks.plan('applications: { shop: {} }', { prune: true })).body.changes).toEqual([]);
  });

  test('tell things of the same name by their types', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { main: { size_gb: 1 } }\ndatabases: { main: { engine: redis } }');
    await service.sql(`update databases set status = 'available' where project_id = $1`, [stacks.project]);
    const plan = await stacks.plan('{}', { prune: true });
    expect([plan.body.confirm, plan.body.refusals]).toEqual([['database:main', 'volume:main'], []]);
    for (const confirm of [['main'], ['main', 'volume:main'], ['volume:main', 'bucket:main']])
      expect((await stacks.apply('{}', plan, { confirm })).body.errors).toMatchObject([{ field: 'confirm' }]);
    expect((await stacks.apply('{}', plan, { confirm: ['database:main', 'volume:main'] })).status).toBe(202);
    await stacks.make('volumes: { alone: { size_gb: 1 } }');
    await stacks.make('{}', { prune: true, confirm: ['volume:alone'] });
  });

  test('that would pause the key are said before', async () => {
    const stacks = await fresh();
    const file = `applications: { shop: { variables: { A: '1', B: '2' } } }`;
    await stacks.make(file);
    const without = 'applications: { shop: {} }';
    const fill = `update api_keys set destroyed_at = array_fill(now(), array[$2::int]) where id = $1`;
    const me = await service.call('GET', '/v2/me', { key: stacks.key, project: null });
    const pauses = async (): Promise<boolean> => (await stacks.plan(without, { prune: true })).body.pauses_key;
    await service.sql(fill, [me.body.token.id, 998]);
    expect(await pauses()).toBe(false);
    await service.sql(fill, [me.body.token.id, 999]);
    expect(await pauses()).toBe(true);
    const plan = await stacks.plan(without, { prune: true });
    expect((await stacks.apply(without, plan)).body.code).toBe('key_paused');
  });

  test('of a volume that an application goes on without detach it', async () => {
    const stacks = await fresh();
    await stacks.make(
      'applications: { shop: {} }\nvolumes: { used: { size_gb: 1, application: shop, mount_path: /data } }',
    );
    const file = 'applications: { shop: {} }';
    const plan = await stacks.plan(file, { prune: true });
    expect([plan.body.refusals, briefly(plan.body.changes)]).toEqual([[], ['delete volume used']]);
    expect((await stacks.apply(file, plan, { confirm: ['used'] })).status).toBe(202);
    expect((await stacks.plan(file, { prune: true })).body.changes).toEqual([]);
  });

  test('are refused for what is protected', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { safe-one: { size_gb: 1, deletion_protection: true } }');
    const { body } = await stacks.plan('{}', { prune: true });
    expect(body.refusals).toMatchObject([{ name: 'safe-one', code: 'deletion_protected', line: null }]);
  });
});

describe('the rights of the caller', () => {
  const file = 'databases: { rights: { engine: postgresql } }\napplications: { rights: { variables: { A: b } } }';

  test('hold: a key that may only read plans, and the plan says what it lacks', async () => {
    const stacks = stacksOf(service);
    const key = await service.mintKey({ scopes: ['read'] });
    const { status, body } = await stacks.plan(file, { key });
    expect(status).toBe(200);
    expect(body.refusals.map((one: Record<string, unknown>) => [one.name, one.code])).toEqual([
      ['rights', 'insufficient_scope'],
      ['rights', 'insufficient_scope'],
      ['rights/A', 'reference_not_found'],
    ]);
    const viewer = await service.mintKey({ role: 'viewer' });
    expect((await stacks.plan(file, { key: viewer })).body.code).toBe('role_not_permitted');
  });

  test('hold: a source is code, and needs the scope deploy', async () => {
    const key = await service.mintKey({ scopes: ['read', 'write'] });
    const source = 'applications: { code: { source: { type: image, image: nginx } } }';
    const { body } = await stacksOf(service).plan(source, { key });
    expect(body.refusals).toMatchObject([{ name: 'code', code: 'insufficient_scope' }]);
  });

  test('hold: values of variables are not compared for who may not read them', async () => {
    const stacks = stacksOf(service);
    const variables = 'applications: { rights-two: { variables: { A: b } } }';
    await stacks.make(variables);
    const key = await service.mintKey({ scopes: ['read', 'write', 'env:write'] });
    for (const value of ['b', 'c']) {
      const { body } = await stacks.plan(variables.replace('A: b', `A: ${value}`), { key });
      expect([body.changes, body.refusals]).toMatchObject([[], [{ code: 'insufficient_scope' }]]);
    }
  });

  test('hold: a key that may not destroy prunes nothing', async () => {
    const stacks = await fresh();
    await stacks.make('volumes: { spared: { size_gb: 1 } }');
    const key = await service.mintKey({ may_destroy: false });
    const { body } = await stacks.plan('{}', { key, prune: true });
    expect(body.refusals).toMatchObject([{ name: 'spared', code: 'destroy_not_allowed' }]);
  });

  test('an apply that destroys waits for its approval, which shows the changes and not the file', async () => {
    const owner = await newBrowser(service, 'stack-owner@example.com', 'owner');
    const stacks = stacksOf(service);
    const key = await service.mintKey({ role: 'developer' });
    await stacks.make(
      'volumes: { approved: { size_gb: 1 } }\napplications: { approved: { variables: { A: s3cret } } }',
    );
    await service.sql('update projects set approval_required_for = $2 where id = $1', [service.project, 'keys']);
    const all = (await stacks.export('?values=true')).body.document as string;
    const without = all
      .replace(/ {4}variables:\n {6}A: s3cret\n/, '')
      .replace('approved:\n    description', 'approved:\n    description');
    const plan = await stacks.plan(without, { key, prune: true });
    expect(plan.body).toMatchObject({ requires_approval: true, refusals: [] });
    const asked = await stacks.apply(without, plan, { key });
    expect([asked.status, asked.body.code]).toEqual([403, 'approval_required']);
    const shown = await service.call('GET', `/v2/approvals/${asked.body.approval_id}`);
    expect(shown.body.operation).toBe('applyStack');
    expect(shown.text).toContain('deleteEnvironmentVariable approved/A');
    expect(shown.text).not.toContain('s3cret');
    await owner.data('mutation ($id: ID!) { approveCall(id: $id) { status } }', { id: asked.body.approval_id });
    expect((await stacks.apply(without, plan, { key })).status).toBe(202);
    expect((await stacks.apply(without, plan, { key })).status).toBe(409);
    await service.sql('update projects set approval_required_for = $2 where id = $1', [service.project, 'none']);
  });
});

describe('an export', () => {
  test('is a file of which the plan is empty, and makes the same in another project', async () => {
    const stacks = await fresh();
    const { file, bucket } = shop();
    await stacks.make(file);
    const { body } = await stacks.export();
    expect(body.document).toContain('secret: true');
    expect(body.document).not.toContain('debug');
    const plan = await stacks.plan(body.document, { prune: true });
    expect([plan.body.changes, plan.body.refusals]).toEqual([[], []]);
    const full = (await stacks.export('?values=true')).body.document as string;
    expect(full).toContain('LOG_LEVEL: debug');
    const other = await fresh();
    const copy = full.replace(bucket, `copy-${bucket}`).replace('shop.example.com', 'two.example.com');
    await other.make(copy);
    expect((await other.export('?values=true')).body.document).toBe(copy);
  });

  test('has values for those alone who may read them', async () => {
    const key = await service.mintKey({ scopes: ['read'] });
    expect((await stacksOf(service).export('?values=true', { key })).body.code).toBe('insufficient_scope');
    expect((await stacksOf(service).export('', { key })).status).toBe(200);
    const viewer = await service.mintKey({ role: 'viewer' });
    expect((await stacksOf(service).export('?values=true', { key: viewer })).body.code).toBe('role_not_permitted');
    expect((await stacksOf(service).export('', { key: viewer })).status).toBe(200);
  });

  test('leaves out databases of previews, and what a database was copied of', async () => {
    const stacks = await fresh();
    await stacks.make('databases: { main: { engine: postgresql }, of-preview: { engine: postgresql } }');
    const mask = [{ table: 'people', column: 'name', rule: 'set_null', value: null }];
    await service.sql(`update databases set mask = $2 where project_id = $1`, [stacks.project, JSON.stringify(mask)]);
    await service.sql(`update databases set preview_id = $2 where project_id = $1 and name = 'of-preview'`, [
      stacks.project,
      'prv_01h455vb4pex5vsknk084sn02q',
    ]);
    const { document } = (await stacks.export()).body;
    expect(document).toContain('main:');
    expect(document).not.toMatch(/of-preview|mask|people/);
    expect((await stacks.plan(document, { prune: true })).body.changes).toEqual([]);
    const copied = 'databases: { copy: { engine: postgresql, copy_of: { backup_id: x } } }';
    expect(JSON.stringify((await stacks.plan(copied)).body)).toContain('is not a field');
  });

  test('says what a file cannot say, and such is never pruned', async () => {
    const stacks = await fresh();
    expect((await stacks.export()).body).toEqual({ document: '{}\n', left_out: [] });
    expect((await stacks.plan('{}', { prune: true })).body.changes).toEqual([]);
  });
});
