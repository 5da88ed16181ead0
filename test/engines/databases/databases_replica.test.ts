/** @tier heavy @quarter 1 @covers jobs/databases/database_replica.ts drivers/database/postgresql */
// Replicas: they read what the primary has, write nothing, and become databases of their own.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { connect, describePostgresqlWithTools, openHall, type Hall } from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';

describePostgresqlWithTools(() => {
  let hall: Hall;

  beforeAll(async () => void (hall = await openHall()), 60_000);
  afterAll(() => hall?.close(), 60_000);

  test('a replica follows, is promoted to a database with its rows, and the primary goes on', async () => {
    const { id } = await hall.create({ name: 'primary', engine: 'postgresql' });
    const { body: login } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const address: string = login.endpoints[0].connection_string;
    await connect(
      address,
      async (client) => void (await client.query('create table notes as select generate_series(1, 5) as id')),
    );

    const made = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'reader' } });
    expect(made.status).toBe(201);
    const place = `/v2/databases/${id}/replicas/${made.body.id}`;
    const replica = await waitFor(
      'the replica',
      async () => {
        const { body } = await hall.call('GET', place);
        return body.status === 'provisioning' ? null : body;
      },
      60_000,
    );
    expect([replica.status, replica.status_reason]).toEqual(['available', null]);

    const endpoint = await hall.call('POST', `/v2/databases/${id}/endpoints`, {
      body: { name: 'reads', target: 'replicas', replica_id: replica.id },
    });
    expect(endpoint.status).toBe(201);
    await waitFor(
      'the endpoint',
      async () =>
        (await hall.call('GET', `/v2/databases/${id}/endpoints/${endpoint.body.id}`)).body.status === 'active' || null,
    );
    const reads = address.replace(/:\d+\//, `:${endpoint.body.port}/`);
    await waitFor('the rows at the replica', async () => {
      let rows = 0;
      await connect(
        reads,
        async (client) => void (rows = (await client.query('select count(*)::int as count from notes')).rows[0].count),
      );
      return rows === 5 || null;
    });
    await connect(
      reads,
      async (client) => void (await expect(client.query('insert into notes values (6)')).rejects.toThrow(/read-only/)),
    );

    // The database grows before its replica does; then the replica; then the data of the database become others, which
    // it can't follow.
    const available = (): Promise<unknown> =>
      waitFor(
        'the replica',
        async () => ((await hall.call('GET', place)).body.status === 'available' ? true : null),
        60_000,
      );
    expect(
      (await hall.call('PATCH', `/v2/databases/${id}`, { body: { database_package: 's-1vcpu-1gb' } })).body.status,
    ).toBe('updating');
    expect((await hall.settled(id)).status).toBe('available');
    await connect(address, async (client) => void (await client.query('insert into notes values (0)')));
    const sizes = async (): Promise<string> => {
      let seen = '';
      await connect(
        reads,
        async (client) =>
          void (seen = (
            await client.query(
              `select concat_ws(' ', (select count(*) from notes), current_setting('max_connections'),
                current_setting('shared_buffers')) as seen`,
            )
          ).rows[0].seen),
      );
      return seen;
    };
    await waitFor(
      'the replica with room for all',
      async () => ((await sizes().catch(() => '')) === '6 53 64MB' ? true : null),
      60_000,
    );
    await connect(address, async (client) => void (await client.query('delete from notes where id = 0')));
    const larger = await hall.call('PATCH', place, { body: { database_package: 's-1vcpu-1gb' } });
    expect([larger.body.status, larger.body.database_package]).toEqual(['updating', 's-1vcpu-1gb']);
    await available();
    expect(await sizes()).toBe('5 53 256MB');

    const backup = await hall.call('POST', `/v2/databases/${id}/backups`, { body: {} });
    await waitFor('the backup', async () =>
      (await hall.call('GET', `/v2/databases/${id}/backups/${backup.body.id}`)).body.status === 'completed'
        ? true
        : null,
    );
    await connect(
      address,
      async (client) => void (await client.query('insert into notes select generate_series(6, 100)')),
    );
    expect(await hall.act(id, 'restore', { backup_id: backup.body.id })).toMatchObject({
      status: 'available',
      status_reason: null,
    });
    const anew = await waitFor('its new beginning', async () => {
      const { body } = await hall.call('GET', place);
      return body.status === 'provisioning' ? body : null;
    });
    expect(anew.status_reason).toMatch(/^The data of the database were restored.* created again/);
    await available();
    expect((await hall.call('GET', place)).body).toMatchObject({
      status_reason: null,
      database_package: 's-1vcpu-1gb',
    });
    await connect(reads, async (client) =>
      expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]),
    );
    await connect(address, async (client) => void (await client.query('insert into notes values (0)')));
    await waitFor('what is written after the restore', async () => {
      let rows = 0;
      await connect(
        reads,
        async (client) => void (rows = (await client.query('select count(*)::int as count from notes')).rows[0].count),
      );
      return rows === 6 || null;
    });
    await connect(address, async (client) => void (await client.query('delete from notes where id = 0')));

    const promoted = await hall.call('POST', `${place}/promote`);
    expect([promoted.status, promoted.body.status]).toEqual([expect.any(Number), 'provisioning']);
    const own = await hall.settled(promoted.body.id);
    expect([own.status, own.status_reason]).toEqual(['available', null]);
    const { body: fresh } = await hall.call('GET', `/v2/databases/${own.id}/credentials`);
    await connect(fresh.endpoints[0].connection_string, async (client) => {
      await client.query('insert into notes values (6)');
      expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 6 }]);
    });
    await connect(address, async (client) =>
      expect((await client.query('select count(*)::int as count from notes')).rows).toEqual([{ count: 5 }]),
    );
    await waitFor('the end of the replica', async () => (await hall.call('GET', place)).status === 404 || null);
    expect((await hall.settled(id)).status).toBe('available');

    // One that is deleted leaves nothing behind, at the primary neither.
    const second = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'second' } });
    await waitFor(
      'the second replica',
      async () =>
        (await hall.call('GET', `/v2/databases/${id}/replicas/${second.body.id}`)).body.status === 'available'
          ? true
          : null,
      60_000,
    );
    const slots = async (): Promise<string[]> => {
      let names: string[] = [];
      await connect(
        address,
        async (client) =>
          void (names = (await client.query('select slot_name from pg_replication_slots order by 1')).rows.map(
            (row) => row.slot_name,
          )),
      );
      return names;
    };
    expect(await slots()).toEqual([second.body.id]);
    expect((await hall.call('DELETE', `/v2/databases/${id}/replicas/${second.body.id}`)).status).toBe(204);
    await waitFor('the end of its server', async () =>
      (await hall.service.sql('select 1 from database_ports where owner_id = $1', [second.body.id])).length
        ? null
        : true,
    );
    expect(existsSync(path.join(hall.databaseDir, second.body.id))).toBe(false);
    // So does one that has not come to its copy yet.
    const third = await hall.call('POST', `/v2/databases/${id}/replicas`, { body: { name: 'third' } });
    await waitFor('its home', async () => (existsSync(path.join(hall.databaseDir, third.body.id)) ? true : null));
    expect((await hall.call('DELETE', `/v2/databases/${id}/replicas/${third.body.id}`)).status).toBe(204);
    await waitFor('the end of its row', async () =>
      (await hall.service.sql('select 1 from database_replicas where id = $1', [third.body.id])).length ? null : true,
    );
    expect(readdirSync(hall.databaseDir).filter((name) => name.includes(third.body.id))).toEqual([]);
    await waitFor('the end of all slots', async () => ((await slots()).length ? null : true), 60_000);
  }, 240_000);
});
