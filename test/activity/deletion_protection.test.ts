// Protection from deletion: every kind whose rows have the column, by itself and with its whole project, on every way.
import { allKinds } from '../../models/base/kinds';
import type { ResourceClass } from '../../models/base/resource';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type TestService } from '../support/service';
import { openWorld, operations, type World } from '../support/world';

let service: TestService;
let world: World;
beforeAll(async () => {
  service = await startService({ settings: SAMPLE_SETTINGS });
  world = openWorld(service);
});
afterAll(() => service.close());

/** Kinds of a project that hold data, with the column or without. */
const PROTECTED = ['application', 'bucket', 'cdn_zone', 'database', 'dns_zone', 'email_domain', 'email_relay_zone'];
const ALSO = ['project', 'registry', 'volume'];

async function protectable(): Promise<ResourceClass[]> {
  const tables = await service.sql<{ name: string }>(
    `select table_name as name from information_schema.columns where column_name = 'deletion_protection'`,
  );
  return allKinds().filter(({ table }) => tables.some(({ name }) => name === table));
}

const collection = (kind: string): string => {
  const one = operations.find(({ id, method }) => method === 'DELETE' && kindOf(id) === kind);
  if (!one) throw new Error(`nothing deletes a ${kind}`);
  return one.path.replace('/{id}', '');
};
const kindOf = (operation: string): string =>
  operation
    .replace(/^delete/, '')
    .replace(/[A-Z]/g, (letter, index: number) => `${index ? '_' : ''}${letter.toLowerCase()}`);

test('every kind that stands by itself in a project and holds data can be protected', async () => {
  const kinds = (await protectable()).map(({ kind }) => kind);
  expect(kinds.sort()).toEqual([...PROTECTED, ...ALSO].sort());
  // Those without data, and what a deletion of them loses.
  const others = allKinds().filter(({ projectChild, kind }) => projectChild && !kinds.includes(kind));
  expect(others.map(({ kind }) => kind).sort()).toEqual([
    'bucket_access_key',
    'git_integration',
    'notifier',
    'observer',
    'robot_account',
    'shared_repository',
  ]);
});

test('a protected resource is not deleted, by either face, in a dry run or by a key that may not know', async () => {
  for (const { kind } of await protectable()) {
    if (kind === 'project') continue;
    const id = await world.fresh(kind);
    const path = `${collection(kind)}/${id}`;
    const on = await world.call('PATCH', path, { body: { deletion_protection: true } });
    expect([kind, on.status, on.body.deletion_protection]).toEqual([kind, 200, true]);
    const refusals = [
      await world.call('DELETE', path),
      await world.call('DELETE', path, { headers: { 'Dry-Run': 'true' } }),
    ];
    for (const { status, body } of refusals)
      expect([kind, status, body.code, body.protected_by]).toEqual([kind, 409, 'deletion_protected', id]);
    const name = kind.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    const { errors } = await service.graphql(`mutation { delete${name}(id: "${id}") }`);
    expect([kind, errors?.[0].extensions.code]).toEqual([kind, 'deletion_protected']);
    const shown = await world.call('GET', path);
    expect([kind, shown.status, shown.body.deletion_protection]).toEqual([kind, 200, true]);
    expect((await world.call('PATCH', path, { body: { deletion_protection: null } })).status).toBe(422);
    await world.call('PATCH', path, { body: { deletion_protection: false } });
    expect([kind, (await world.call('DELETE', path)).status]).toEqual([kind, 204]);
  }
});

test('a protected project protects all that holds data in it, and itself; what holds none can go', async () => {
  const { id: project, key } = await service.newProject();
  const other = openWorld(service, { id: project, key });
  const kinds = (await protectable()).filter(({ kind }) => kind !== 'project');
  const paths = new Map<string, string>();
  for (const { kind } of kinds) paths.set(kind, `${collection(kind)}/${await other.fresh(kind)}`);
  const backup = await service.sql<{ id: string }>(
    `insert into database_backups (id, project_id, database_id, type, engine_version, status, created_at, updated_at)
     select 'bkp_01h455vb4pex5vsknk084sn02q', project_id, id, 'manual', engine_version, 'completed', now(), now()
     from databases where project_id = $1 returning id`,
    [project],
  );
  expect(backup).toHaveLength(1);
  paths.set('database_backup', `${paths.get('database')}/backups/bkp_01h455vb4pex5vsknk084sn02q`);
  const at = `/v2/projects/${project}`;
  expect((await other.call('PATCH', at, { body: { deletion_protection: true } })).body).toMatchObject({
    deletion_protection: true,
  });
  for (const [kind, path] of paths) {
    const { status, body } = await other.call('DELETE', path);
    expect([kind, status, body?.code, body?.protected_by]).toEqual([kind, 409, 'deletion_protected', project]);
  }
  const owner = await service.mintKey({ scopes: ['read', 'write'] });
  const whole = await service.call('DELETE', at, { key: owner, project: null });
  expect([whole.status, whole.body.code]).toEqual([409, 'deletion_protected']);
  const observer = await other.fresh('observer');
  expect((await other.call('DELETE', `/v2/observers/${observer}`)).status).toBe(204);
  await other.call('PATCH', at, { body: { deletion_protection: false } });
  expect((await other.call('DELETE', paths.get('database_backup') as string)).status).toBe(204);
  expect((await other.call('DELETE', paths.get('volume') as string)).status).toBe(204);
});

test('it is set at creation, is shown in lists, and a project key sees and sets that of its project', async () => {
  const { body: made } = await world.call('POST', '/v2/volumes', {
    body: { name: 'kept', size_gb: 1, deletion_protection: true },
  });
  expect(made.deletion_protection).toBe(true);
  const { body: list } = await world.call('GET', '/v2/volumes?name=kept');
  expect(list.data[0].deletion_protection).toBe(true);
  const { body: project } = await service.call('POST', '/v2/projects', {
    body: { name: 'Kept', deletion_protection: true },
    project: null,
  });
  expect(project.deletion_protection).toBe(true);
  const { body: all } = await service.call('GET', '/v2/projects?name=Kept', { project: null });
  expect(all.data[0].deletion_protection).toBe(true);
});
