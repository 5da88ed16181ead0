// A replica becomes a database of its own (docs/contract/resources.md §9.3).
import type { ManagedDatabase } from '../../models/databases/database';
import { openAdminPassword } from '../../models/databases/database/credentials';
import { childrenOf, endpoint, replica } from '../support/databases/database_children';
import { backup, database, setStatus } from '../support/databases/databases';
import { fresh, rowOf, service, setUpReplicas } from '../support/databases/database_replica_cases';

setUpReplicas();

const MISSING = 'rep_01h455vb4pex5vsknk084sn02q';

describe('promotion', () => {
  it('answers a database with the server, the users and the passwords of the replica', async () => {
    const { id, post, get } = await fresh({ name: 'sales', storage_gb: 3, backup_schedule: { hour_utc: 5 } });
    await post('users', { username: 'reports', access: 'read_only' });
    const made = await replica(service, id, { name: 'heir', database_package: 's-1vcpu-1gb' });
    await endpoint(service, id, { target: 'replicas', replica_id: made.id });
    const server = await rowOf('database_replicas', made.id);
    const promoted = await post(`replicas/${made.id}/promote`);
    expect([promoted.status, promoted.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${promoted.body.id}`,
    ]);
    expect(promoted.body).toMatchObject({
      name: 'heir',
      status: 'provisioning',
      database_package: 's-1vcpu-1gb',
      storage_gb: 3,
      database_name: 'app',
      username: 'app',
      restore_from: null,
      backup_schedule: { hour_utc: 5 },
    });
    expect((await get('replicas', made.id)).body.status).toBe('promoting');
    const spans = await service.sql(
      'select resource_id from usage_spans where ended_at is null and resource_id = any($1)',
      [[made.id, promoted.body.id]],
    );
    expect(spans).toEqual([{ resource_id: promoted.body.id }]);

    const row = await rowOf('databases', promoted.body.id);
    for (const column of ['server_id', 'port', 'tenant'])
      expect([column, row[column]]).toEqual([column, server[column]]);
    expect(await service.sql('select owner_id from database_ports where port = $1', [server.port])).toEqual([
      { owner_id: promoted.body.id },
    ]);
    const [mine, theirs] = await Promise.all(
      [id, promoted.body.id].map(async (one) => (await service.call('GET', `/v2/databases/${one}/credentials`)).body),
    );
    expect([theirs.username, theirs.password]).toEqual([mine.username, mine.password]);
    expect(theirs.endpoints).toEqual([
      expect.objectContaining({ name: 'default', access: 'private', host: '127.0.0.1', port: server.port }),
    ]);
    const users = (await childrenOf(service, promoted.body.id).get('users', '?sort=username')).body.data;
    expect(users.map(({ username, access }: { username: string; access: string }) => [username, access])).toEqual([
      ['app', 'admin'],
      ['reports', 'read_only'],
    ]);
    expect((await get('endpoints')).body.data.map(({ name }: { name: string }) => name)).toEqual(['default']);
  });

  it('the job can open what the platform keeps of it', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'opened' });
    const promoted = (await post(`replicas/${made.id}/promote`)).body;
    const [before, after] = [await rowOf('databases', id), await rowOf('databases', promoted.id)] as unknown as [
      ManagedDatabase,
      ManagedDatabase,
    ];
    expect(openAdminPassword(service.platform.secrets, after)).toBe(
      openAdminPassword(service.platform.secrets, before),
    );
  });

  it('has another name where that of the replica is taken', async () => {
    const { id, post } = await fresh();
    const long = 'a-name-that-has-as-many-letters-as-can-b';
    for (const name of ['fallback', long]) {
      await database(service, { name });
      const made = await replica(service, id, { name });
      const { status, body } = await post(`replicas/${made.id}/promote`);
      expect([status, body.name]).toEqual([
        201,
        expect.stringMatching(new RegExp(`^${name.slice(0, 25)}[a-z-]*-[0-9a-z]{8}$`)),
      ]);
      expect(body.name.length).toBeLessThanOrEqual(40);
    }
  });

  it('works when the database itself is lost', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'survivor' });
    await setStatus(service, id, 'failed');
    expect((await post(`replicas/${made.id}/promote`)).status).toBe(201);
  });

  it('needs an available replica and room for a database', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'candidate' });
    for (const [status, code] of [
      ['provisioning', 'resource_busy'],
      ['updating', 'resource_busy'],
      ['promoting', 'resource_busy'],
      ['failed', 'invalid_state'],
    ] as const) {
      await service.sql('update database_replicas set status = $2 where id = $1', [made.id, status]);
      expect(await post(`replicas/${made.id}/promote`)).toMatchObject({
        status: 409,
        body: { code, resource_status: status },
      });
    }
    await service.sql(`update database_replicas set status = 'available' where id = $1`, [made.id]);
    const [{ count }] = (await service.sql(
      'select count(*) as count from databases where project_id = $1 and deleted_at is null',
      [service.project],
    )) as [{ count: number }];
    await Promise.all(Array.from({ length: 60 - count }, () => database(service, { engine: 'redis' })));
    expect(await post(`replicas/${made.id}/promote`)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'databases' },
    });
    await service.sql(`update databases set deleted_at = now() where engine = 'redis'`);
    const answers = await Promise.all([post(`replicas/${made.id}/promote`), post(`replicas/${made.id}/promote`)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  it('happens once where the request comes twice', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'twice' });
    const headers = { 'Idempotency-Key': 'promotion-1' };
    const [first, second] = [
      await post(`replicas/${made.id}/promote`, undefined, headers),
      await post(`replicas/${made.id}/promote`, undefined, headers),
    ];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
  });

  it('leaves backups with their database', async () => {
    const { id, post, get } = await fresh();
    const kept = await backup(service, id);
    const made = await replica(service, id, { name: 'without-backups' });
    const promoted = (await post(`replicas/${made.id}/promote`)).body;
    expect((await childrenOf(service, promoted.id).get('backups')).body.data).toEqual([]);
    expect((await get('backups')).body.data.map((one: { id: string }) => one.id)).toEqual([kept]);
  });
});

test('lists have filters, sorts and pages', async () => {
  const { id, get } = await fresh();
  for (const [name, status] of [
    ['aaa', 'available'],
    ['ccc', 'failed'],
    ['bbb', 'available'],
  ] as const)
    await replica(service, id, { name }, status);
  const names = async (query: string): Promise<string[]> =>
    (await get('replicas', `?${query}`)).body.data.map(({ name }: { name: string }) => name);
  expect(await names('')).toEqual(['bbb', 'ccc', 'aaa']);
  expect(await names('sort=name')).toEqual(['aaa', 'bbb', 'ccc']);
  expect(await names('status=failed')).toEqual(['ccc']);
  expect(await names('region=local&sort=-name&limit=1')).toEqual(['ccc']);
  expect(await names('region=mars')).toEqual([]);
  const { next_cursor } = (await get('replicas', '?limit=2')).body;
  expect(await names(`limit=2&cursor=${next_cursor}`)).toEqual(['aaa']);
});

test('nothing of it is for other projects or other databases', async () => {
  const { id } = await fresh();
  const made = await replica(service, id);
  const other = await service.newProject();
  const beside = await fresh();
  const cases = [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'mine' }],
    ['DELETE', '', undefined],
    ['POST', '/promote', undefined],
  ] as const;
  for (const [method, action, body] of cases) {
    expect(
      (
        await service.call(method, `/v2/databases/${id}/replicas/${made.id}${action}`, {
          body,
          key: other.key,
          project: other.id,
        })
      ).status,
    ).toBe(404);
    expect(
      (await service.call(method, `/v2/databases/${beside.id}/replicas/${made.id}${action}`, { body })).status,
    ).toBe(404);
    expect((await service.call(method, `/v2/databases/${id}/replicas/${MISSING}${action}`, { body })).status).toBe(404);
  }
});
