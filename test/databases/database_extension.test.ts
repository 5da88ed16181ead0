/** @tier heavy @quarter 3 @covers models/databases/database_extension drivers/database/postgresql/extensions.ts */
// Extensions that need a superuser, in a real server: created, used, kept over a restore, dropped, refused.
import {
  connect,
  describePostgresqlWithTools,
  openHall,
  postgresqlVersions,
  type Hall,
} from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

jest.setTimeout(120_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

describePostgresqlWithTools(() => {
  let hall: Hall;
  let id: string;
  let address: string;

  beforeAll(async () => {
    hall = await openHall();
    id = (await hall.create({ name: 'shop', engine: 'postgresql', engine_version: '15' })).id;
    address = (await hall.call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
  });
  afterAll(() => hall?.close());

  const place = (name = ''): string => `/v2/databases/${id}/extensions${name && `/${name}`}`;
  const enable = (name: string) => hall.call('POST', `${place(name)}/enable`);
  const disable = (name: string) => hall.call('POST', `${place(name)}/disable`);
  const found = async (name: string) => (await hall.call('GET', place(name))).body;
  const settled = (name: string) =>
    waitFor('the extension', async () => {
      const one = await found(name);
      return ['enabling', 'disabling'].includes(one.status) ? null : one;
    });
  const query = async (sql: string): Promise<unknown[]> => {
    let rows: unknown[] = [];
    await connect(address, async (client) => void ({ rows } = await client.query(sql)));
    return rows;
  };

  test('what the host has is listed, with what is refused and why', async () => {
    const { body } = await hall.call('GET', `${place()}?limit=100`);
    const byName = new Map<string, any>(body.data.map((one: any) => [one.name, one]));
    expect(byName.get('earthdistance')).toEqual({
      ...{ name: 'earthdistance', version: '1.1', installed_version: null, is_trusted: false, requires: ['cube'] },
      description: 'calculate great-circle distances on the surface of the Earth',
      ...{ status: 'available', status_reason: null },
    });
    expect(byName.get('citext')).toMatchObject({ is_trusted: true, status: 'available' });
    expect(byName.get('dblink')).toMatchObject({
      status: 'refused',
      status_reason: expect.stringMatching(/addresses/),
    });
    expect(byName.has('plpgsql')).toBe(false);
    const query = 'query ($id: ID!) { listDatabaseExtensions(id: $id, limit: 100) { data { name } } }';
    const asked = await hall.call('POST', '/graphql', { body: { query, variables: { id } } });
    expect(asked.body.data.listDatabaseExtensions.data).toHaveLength(byName.size);
    const refused = await hall.call('GET', `${place()}?limit=100&status=refused`);
    expect(refused.body.data.map((one: any) => one.name)).toContain('file_fdw');
    expect(refused.body.data.every((one: any) => one.status === 'refused')).toBe(true);
  });

  test('one that needs a superuser is there when the answer is, and its dump restores', async () => {
    await expect(query('create extension earthdistance cascade')).rejects.toThrow(/permission denied/);
    expect((await enable('earthdistance')).status).toBe(202);
    expect(await settled('earthdistance')).toMatchObject({ status: 'enabled', installed_version: '1.1' });
    await query('create extension if not exists earthdistance cascade');
    const [row] = (await query('select earth_distance(ll_to_earth(0, 0), ll_to_earth(0, 1))::int as metres')) as any[];
    expect(row.metres).toBeGreaterThan(111_000);
    // Again is no change.
    expect((await enable('earthdistance')).body.status).toBe('enabled');
  });

  test('one that the server loads at its start restarts it', async () => {
    expect((await enable('pg_stat_statements')).status).toBe(202);
    expect(await settled('pg_stat_statements')).toMatchObject({ status: 'enabled', status_reason: null });
    await waitFor('the view', () => query('select count(*) from pg_stat_statements').catch(() => null));
    await query('select 41 + 1');
    expect(await query(`select query from pg_stat_statements where query like 'select $1 + %'`)).toHaveLength(1);
    const [{ began }] = (await query('select pg_postmaster_start_time()::text as began')) as [{ began: string }];
    expect((await disable('pg_stat_statements')).status).toBe(202);
    expect(await settled('pg_stat_statements')).toMatchObject({ status: 'available', installed_version: null });
    await waitFor('a server without it', async () => {
      const later = await query(`select where pg_postmaster_start_time() > '${began}'`).catch(() => []);
      return later.length > 0;
    });
  });

  test('what other objects need stays, and the reason names them', async () => {
    await query('create table places (at cube)');
    expect((await disable('earthdistance')).status).toBe(202);
    expect(await settled('earthdistance')).toMatchObject({ status: 'available' });
    expect((await enable('cube')).status).toBe(202);
    expect(await settled('cube')).toMatchObject({ status: 'enabled' });
    await disable('cube');
    const kept = await settled('cube');
    expect(kept).toMatchObject({ status: 'enabled', installed_version: '1.5' });
    expect(kept.status_reason).toMatch(/depend on it: column at of table public.places/);
    await query('drop table places');
    await disable('cube');
    expect(await settled('cube')).toMatchObject({ status: 'available' });
  });

  test('a function of the tenant does not stand in for one that a script calls as superuser', async () => {
    await query(`create function public.format(text, text) returns text language sql as 'select $1'`);
    await enable('bloom');
    const failed = await settled('bloom');
    expect(failed).toMatchObject({ status: 'failed', installed_version: null });
    expect(failed.status_reason).toMatch(/function format.*Rename it, and enable bloom again/);
    await query('drop function public.format(text, text)');
    await enable('bloom');
    expect(await settled('bloom')).toMatchObject({ status: 'enabled', status_reason: null });
  });

  test('refusals change nothing', async () => {
    for (const [name, status, code] of [
      ['dblink', 422, 'engine_feature_unsupported'],
      ['plpython3u', 404, 'not_found'],
      ['nothing_of_that_name', 404, 'not_found'],
      [encodeURIComponent('x"; drop table users; --'), 404, 'not_found'],
      ['plpgsql', 404, 'not_found'],
    ] as const)
      expect([name, (await enable(name)).status, (await enable(name)).body.code]).toEqual([name, status, code]);
    expect((await disable('citext')).body).toMatchObject({ code: 'invalid_state', resource_status: 'available' });
    expect(await query(`select extname from pg_extension where extname ~ 'dblink|plpython|users'`)).toEqual([]);
  });

  test('a restore to a moment before it has it again', async () => {
    const backup = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    await waitFor('the backup', async () =>
      (await hall.call('GET', `/v2/databases/${id}/backups/${backup.body.id}`)).body.status === 'completed'
        ? true
        : null,
    );
    await enable('moddatetime');
    expect(await settled('moddatetime')).toMatchObject({ status: 'enabled' });
    await hall.act(id, 'restore', { backup_id: backup.body.id });
    await waitFor('the extension', async () =>
      (await query(`select from pg_extension where extname = 'moddatetime'`).catch(() => [])).length > 0 ? true : null,
    );
  });

  test('a newer version has it again', async () => {
    if (!postgresqlVersions().some((series) => series > 15)) return;
    await enable('earthdistance');
    expect(await settled('earthdistance')).toMatchObject({ status: 'enabled' });
    await hall.act(id, 'upgrade', { engine_version: String(postgresqlVersions()[0]) });
    const { version } = await found('earthdistance');
    expect(await settled('earthdistance')).toMatchObject({ status: 'enabled', installed_version: version });
  });
});
